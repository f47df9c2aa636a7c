#include "weft/program/memory/waiting_boxes.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace weft::memory {

WaitingBoxes::WaitingBoxes(std::span<const Box> boxes)
    : boxes_(boxes), nodes_(2 * std::bit_ceil(boxes.size())), leaf_of_(boxes.size()) {
  std::vector<std::uint32_t> positions(boxes.size());
  std::iota(positions.begin(), positions.end(), 0u);
  if (!positions.empty()) build(0, positions, true);
}

void WaitingBoxes::build(std::size_t node, std::span<std::uint32_t> positions, bool by_first) {
  if (positions.size() == 1) {
    const Box& box = boxes_[positions[0]];
    nodes_[node] = {box.first, box.first, box.past, box.past, kNone, true};
    leaf_of_[positions[0]] = node;
    return;
  }
  const std::size_t half = (positions.size() + 1) / 2;
  std::ranges::nth_element(positions, positions.begin() + static_cast<std::ptrdiff_t>(half), {},
                           [&](std::uint32_t p) {
                             const Box& box = boxes_[p];
                             return std::pair(by_first ? box.first : box.past, p);
                           });
  const std::size_t low = 2 * node + 1, high = 2 * node + 2;
  build(low, positions.first(half), !by_first);
  build(high, positions.subspan(half), !by_first);
  nodes_[node] = {std::min(nodes_[low].least_first, nodes_[high].least_first),
                  std::max(nodes_[low].most_first, nodes_[high].most_first),
                  std::min(nodes_[low].least_past, nodes_[high].least_past),
                  std::max(nodes_[low].most_past, nodes_[high].most_past),
                  kNone,
                  false};
}

void WaitingBoxes::reset(std::span<const std::uint32_t> order) {
  order_.assign(order.begin(), order.end());
  for (std::uint32_t rank = 0; rank < order_.size(); ++rank) nodes_[leaf_of_[order_[rank]]].best_rank = rank;
  for (std::size_t node = nodes_.size() / 2; node-- > 0;)
    if (!nodes_[node].leaf && 2 * node + 2 < nodes_.size())
      nodes_[node].best_rank = std::min(nodes_[2 * node + 1].best_rank, nodes_[2 * node + 2].best_rank);
}

std::uint32_t WaitingBoxes::find_within(std::int32_t first, std::int32_t past) const {
  std::uint32_t best_rank = kNone;
  find(0, first, past, best_rank);
  return best_rank == kNone ? kNone : order_[best_rank];
}

void WaitingBoxes::find(std::size_t node, std::int32_t first, std::int32_t past,
                        std::uint32_t& best_rank) const {
  const Node& here = nodes_[node];
  if (here.best_rank >= best_rank || here.most_first < first || here.least_past > past) return;
  if (here.least_first >= first && here.most_past <= past) {
    best_rank = here.best_rank;
    return;
  }
  // The more promising half first: its result may prune the other.
  const std::size_t low = 2 * node + 1, high = 2 * node + 2;
  const bool low_first = nodes_[low].best_rank < nodes_[high].best_rank;
  find(low_first ? low : high, first, past, best_rank);
  find(low_first ? high : low, first, past, best_rank);
}

void WaitingBoxes::remove(std::uint32_t position) {
  std::size_t node = leaf_of_[position];
  nodes_[node].best_rank = kNone;
  while (node != 0) {
    node = (node - 1) / 2;
    nodes_[node].best_rank = std::min(nodes_[2 * node + 1].best_rank, nodes_[2 * node + 2].best_rank);
  }
}

}  // namespace weft::memory
