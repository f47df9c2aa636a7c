// weft/program/memory/waiting_boxes.h -- unplaced boxes, indexed by where they fit.
//
// A k-d tree over the points (first, past): the boxes within a range of moments are those right of
// one line and below another. Each node stores its most preferred unplaced box, so a query visits
// few nodes besides the path to its answer.
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

  // Makes all boxes unplaced again. `order`: a permutation of their positions, by preference.
  void reset(std::span<const std::uint32_t> order);

  // The position of the most preferred unplaced box within [first, past), or kNone.
  std::uint32_t find_within(std::int32_t first, std::int32_t past) const;

  void remove(std::uint32_t position);

 private:
  // The children of node i are 2i + 1 and 2i + 2; a leaf holds one box.
  struct Node {
    std::int32_t least_first = 0, most_first = 0, least_past = 0, most_past = 0;
    std::uint32_t best_rank = kNone;  // among unplaced boxes
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
