// weft/program/memory/waiting_boxes.h -- the boxes not yet placed, asked for by where they fit.
//
// A k-d tree over the points (first, past): the boxes that lie within some moments are those right
// of one line and below another. Each node knows the most preferred box still waiting under it, so
// a question looks at few nodes beside the path to its answer.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

class WaitingBoxes {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  explicit WaitingBoxes(std::span<const Box> boxes);

  // All boxes wait again, the preferred first in `order`: a permutation of their positions.
  void reset(std::span<const std::uint32_t> order);

  // The position of the most preferred box that waits and lies within [first, past), or kNone.
  std::uint32_t find_within(std::int32_t first, std::int32_t past) const;

  void remove(std::uint32_t position);

 private:
  // The children of node i are 2i + 1 and 2i + 2; a leaf holds one box.
  struct Node {
    std::int32_t least_first = 0, most_first = 0, least_past = 0, most_past = 0;
    std::uint32_t best_rank = kNone;  // of what still waits
    bool leaf = false;
  };

  void build(std::size_t node, std::span<std::uint32_t> positions, bool by_first);
  void find(std::size_t node, std::int32_t first, std::int32_t past, std::uint32_t& best_rank) const;

  std::span<const Box> boxes_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> leaf_of_;  // by position
  std::vector<std::uint32_t> order_;
};

}  // namespace weft::memory
