#include "weft/collectives/compile/cut.h"

#include <algorithm>

namespace weft::collective {

namespace {

// Marks the blocks on cycles of the graph "sends to": if all of them send before they receive,
// their connections fill up. A block sends to at most one other, so its path is easy to follow.
std::vector<bool> blocks_on_cycles(const Instructions& assigned) {
  std::vector<std::int32_t> next(assigned.blocks.size(), -1);
  for (const Instruction& it : assigned.list)
    if (it.taker >= 0) next[it.block] = assigned.list[it.taker].block;
  std::vector<bool> in_circle(next.size(), false);
  std::vector<std::int32_t> seen_from(next.size(), -1);
  for (std::int32_t start = 0; start < static_cast<std::int32_t>(next.size()); ++start) {
    std::int32_t at = start;
    for (; at >= 0 && seen_from[at] < 0; at = next[at]) seen_from[at] = start;
    if (at < 0 || seen_from[at] != start) continue;
    for (; !in_circle[at]; at = next[at]) in_circle[at] = true;
  }
  return in_circle;
}

}  // namespace

std::vector<std::int32_t> pieces(const Instructions& assigned, std::int32_t slots, std::size_t moves) {
  const std::vector<bool> in_circle = blocks_on_cycles(assigned);
  // All messages of a fused chain are cut alike, so that its links still match.
  std::vector<std::int32_t> chain(assigned.list.size(), -1), size(assigned.list.size(), 0);
  bool any = false;
  for (std::int32_t i = 0; i < assigned.size(); ++i) {
    const Instruction& it = assigned.list[i];
    if (it.taker < 0) continue;
    chain[i] = it.giver < 0 ? i : chain[it.giver];
    const std::int32_t limit = sends(assigned.list[it.taker].op) ? std::max(1, slots - 1) : slots;
    if (it.count <= limit || !in_circle[it.block]) continue;
    std::int32_t& piece = size[chain[i]];
    piece = piece == 0 ? limit : std::min(piece, limit);
    any = true;
  }
  if (!any) return {};
  std::vector<std::int32_t> result(moves, 0);
  for (std::size_t i = 0; i < chain.size(); ++i)
    if (chain[i] >= 0) result[assigned.list[i].sent] = size[chain[i]];
  return result;
}

Moves cut(const Moves& moves, std::span<const std::int32_t> sizes) {
  Moves result = moves;
  result.moves.clear();
  for (std::size_t m = 0; m < moves.moves.size(); ++m) {
    const Move& whole = moves.moves[m];
    const std::int32_t size = sizes[m] > 0 ? sizes[m] : whole.count;
    for (std::int32_t first = 0; first < whole.count; first += size) {
      Move& piece = result.moves.emplace_back(whole);
      piece.from.index += first;
      piece.to.index += first;
      piece.count = std::min(size, whole.count - first);
    }
  }
  return result;
}

}  // namespace weft::collective
