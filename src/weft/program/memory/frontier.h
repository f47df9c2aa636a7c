// weft/program/memory/frontier.h -- the state of the exact packing search.
//
//        +------+                   The boxes placed so far form a skyline, the tops. Remaining boxes
//   -----+      | . . . .           go above it, on the floors (dotted). A floor is a top, or higher
//               +--m------+         where no box could rest directly on the top.
//                         +-----
//
// Each valley of the floors poses a question: which box is on the floor at moment m? The answer is
// one of the boxes that cover m and fit between the walls, or none. Then the floor rises to the
// lowest place where the next box over m could rest: on a wall, or on a box beside m.
//
// This considers only packings in which no box could move down without moving another. If any
// packing fits the height, one of these does.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

using Moment = std::int32_t;
using Height = std::int64_t;
using BoxIndex = std::uint32_t;  // position in the order of preference

// Unplaced boxes that conflict with no others, and the moments they cover.
struct Part {
  Moment begin = 0, end = 0;
  std::vector<BoxIndex> boxes;  // in order of preference
};

struct Question {
  Moment moment = 0;
  Height floor = 0;
  std::int64_t answers = std::numeric_limits<std::int64_t>::max();  // their number, including "none"
  bool may_stay_bare = false;                                       // whether "none" is possible
  Height next_floor = 0;                                            // the floor after that answer
  Height slack = 0;  // how much of the height may be wasted at this moment

  // Few answers keep the search narrow, and little slack makes wrong answers fail early.
  bool better_than(const Question& other) const {
    if (answers != other.answers) return answers < other.answers;
    return slack != other.slack ? slack < other.slack : floor < other.floor;
  }
};

class Frontier {
 public:
  // `order`: positions of the group's boxes in order of preference.
  Frontier(const Piece& piece, std::span<const std::uint32_t> order, Height height);

  std::vector<Part> split(std::span<const BoxIndex> boxes) const;

  // Raises the floors of the part as far as necessary. False if its boxes cannot stay below the
  // height, or only in a dominated way.
  bool still_possible(const Part& part);

  // REQUIRES: still_possible(part) returned true, and nothing changed since.
  Question choose_question(const Part& part);
  std::vector<BoxIndex> candidates(const Part& part, const Question& question) const;

  void place(BoxIndex box, Height offset);
  void leave_bare(const Question& question) { floor_[question.moment] = question.next_floor; }

  Height offset(BoxIndex box) const { return offsets_[box]; }

  // The state over the moments of a part, for backtracking.
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
  std::vector<Box> boxes_;                // in order of preference
  std::vector<Height> lowest_, offsets_;  // by box: its lowest possible offset, its actual one

  // By moment: the top of the placed boxes, the box there, and the floor for remaining boxes.
  std::vector<Height> top_, floor_;
  std::vector<BoxIndex> owner_;

  // By moment, recomputed for each question, over the remaining boxes there: their total size, how
  // many can rest directly on the floor, and the lowest offset of the others; and the lowest tops
  // of boxes that end or start there.
  std::vector<Height> left_, blocked_, ends_, starts_;
  std::vector<std::int64_t> fitting_;

  std::vector<Height> stack_;     // by moment: scratch of raise_floors and stacks_fit
  std::vector<BoxIndex> rising_;  // boxes ordered by their lowest offset
};

}  // namespace weft::memory
