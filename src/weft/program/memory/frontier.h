// weft/program/memory/frontier.h -- where the exact search stands: what is placed, and what can come next.
//
//        +------+                   The boxes placed so far make a skyline, the tops. What is still to
//   -----+      | . . . .           come lies above it, on the floors (dotted): a floor is a top, or
//               +--m------+         higher where nothing could lie right on the top.
//                         +-----
//
// Floors that form a valley pose a question each: what lies on the floor at moment m? One of the
// boxes that cover m and fit between the walls; or nothing, and the floor rises to where the next box
// over m could rest at the earliest: on a wall, or on a box beside m.
//
// All this speaks of packings in which no box could lie lower without moving another. If any packing
// fits the height, one of these does.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

using Moment = std::int32_t;
using Height = std::int64_t;
using BoxIndex = std::uint32_t;  // a place in the order of preference

// Boxes still to be placed that collide with no others, and the moments they cover.
struct Part {
  Moment begin = 0, end = 0;
  std::vector<BoxIndex> boxes;  // the preferred first
};

struct Question {
  Moment moment = 0;
  Height floor = 0;
  std::int64_t answers = std::numeric_limits<std::int64_t>::max();  // how many, "nothing" included
  bool may_stay_bare = false;                                       // whether "nothing" is one
  Height next_floor = 0;                                            // where the floor rises to then
  Height slack = 0;  // how much of the height at this moment may be wasted

  // Few answers make a narrow search, and little slack makes wrong answers fail soon.
  bool better_than(const Question& other) const {
    if (answers != other.answers) return answers < other.answers;
    return slack != other.slack ? slack < other.slack : floor < other.floor;
  }
};

class Frontier {
 public:
  // `order` has the positions of the piece's boxes, the preferred first.
  Frontier(const Piece& piece, std::span<const std::uint32_t> order, Height height);

  std::vector<Part> split(std::span<const BoxIndex> boxes) const;

  // Raises the floors of the part as far as they must. False when its boxes cannot stay below the
  // height any more, or only in a way that is not worth looking at.
  bool still_possible(const Part& part);

  // REQUIRES: still_possible(part), and nothing done since.
  Question choose_question(const Part& part);
  std::vector<BoxIndex> candidates(const Part& part, const Question& question) const;

  void place(BoxIndex box, Height offset);
  void leave_bare(const Question& question) { floor_[question.moment] = question.next_floor; }

  Height offset(BoxIndex box) const { return offsets_[box]; }

  // What lies over the moments of a part, to come back to.
  struct Memory {
    std::vector<Height> tops, floors;
    std::vector<BoxIndex> owners;
  };
  Memory remember(const Part& part) const;
  void return_to(const Memory& memory, const Part& part);

 private:
  bool raise_floors(const Part& part);
  bool stacks_fit(const Part& part);
  bool leaves_a_gap(const Part& part) const;
  void survey(const Part& part);
  bool same_life(BoxIndex a, BoxIndex b) const;

  const Height height_;
  std::vector<Box> boxes_;                // the preferred first
  std::vector<Height> lowest_, offsets_;  // by box: where it could lie at the lowest, where it does

  // By moment: the upper edge of what is placed, the box that has it, and the floor of what is to come.
  std::vector<Height> top_, floor_;
  std::vector<BoxIndex> owner_;

  // By moment, made anew for each question. Of the boxes to come over it: their sizes together, how
  // many can lie right on the floor, the lowest place of the others. And the lowest upper edges of the
  // boxes that end or start there.
  std::vector<Height> left_, blocked_, ends_, starts_;
  std::vector<std::int64_t> fitting_;

  std::vector<Height> stack_;     // by moment: scratch of raise_floors and stacks_fit
  std::vector<BoxIndex> rising_;  // boxes by where they could lie
};

}  // namespace weft::memory
