// A root whose buffer others read has nothing to do meanwhile: it puts its share straight into their outputs.
//
//   block for rank 1, 3 ranks   | rank 1 copies this         | root does |      all copy as much
//
// That takes outputs that can be reached. Each side tells with the call: the root that it hands out, the
// others where their outputs are.
#include <algorithm>
#include <cstring>

#include "weft/comm/direct_operation.h"
#include "weft/device/past_caches.h"

namespace weft::comm {
namespace {

// Where in a block of `bytes` the root's share begins: the last of as many as there are ranks, whole lines.
std::size_t begin_of_share(std::size_t bytes, std::int32_t ranks) {
  return bytes - bytes / static_cast<std::size_t>(ranks) / kCacheLine * kCacheLine;
}

}  // namespace

std::size_t bytes_to_take(const DirectOperation& operation, std::int32_t giver) {
  const DirectSide& side = *operation.side;
  const std::size_t bytes = operation.blocks.bytes(giver, side.rank);
  const bool shared = operation.output_offered && operation.sources[static_cast<std::size_t>(giver)].hands;
  return shared ? begin_of_share(bytes, side.ranks) : bytes;
}

bool hand_out(DirectOperation& operation, Progress& answer) {
  const DirectSide& side = *operation.side;
  const Blocks& blocks = operation.blocks;
  for (; operation.next < side.ranks; ++operation.next, operation.handed = 0) {
    const std::int32_t target = operation.next;
    if (!blocks.takes(target)) continue;
    const DirectSource* const source = operation.source(target, answer);
    if (source == nullptr) return false;
    const std::size_t bytes = blocks.bytes(side.rank, target);
    const std::size_t from = begin_of_share(bytes, side.ranks) + operation.handed;
    if (source->output == nullptr || from == bytes) continue;
    const std::size_t now = std::min(bytes - from, static_cast<std::size_t>(side.tuning.piece_bytes));
    std::byte* const to = source->output + from;
    const std::byte* const data = operation.input() + blocks.sent_at(side.rank, target) + from;
    if (operation.past_caches)
      device::copy_past_caches(to, data, now);
    else
      std::memcpy(to, data, now);
    operation.handed += now;
    return true;
  }
  operation.hands = false;
  return true;
}

// The root is finished when it has handed out everything.
Progress step_await_share(DirectOperation& operation) {
  const std::int32_t root = operation.call.root;
  SharedWord& finished = DirectLayout::counters(operation.peer(root).part).finished;
  if (!reached(finished, operation.peer(root).finished, operation.sequence + 1))
    return operation.blocked(root, finished, operation.sequence + 1);
  return operation.done();
}

}  // namespace weft::comm
