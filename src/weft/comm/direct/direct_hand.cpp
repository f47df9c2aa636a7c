// A root whose buffer others read has nothing to do meanwhile: it puts its share straight into their outputs.
//
//   block for rank 1, 3 ranks   | rank 1 copies this         | root does |      all copy as much
//
// That takes outputs that can be reached, or, of a root that is read through the kernel, written to the same
// way. Each side tells with the call: the root that it hands out, the others where their outputs are.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "weft/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"

namespace weft::comm {
namespace {

// Where in a block of `bytes` the root's share begins: the last of as many as there are ranks, whole lines.
std::size_t begin_of_share(std::size_t bytes, std::int32_t ranks) {
  return bytes - bytes / static_cast<std::size_t>(ranks) / kCacheLine * kCacheLine;
}

// Whoever gave up may use its memory for something else: see take_back_output().
bool write_there(DirectOperation& operation, std::int32_t target, const std::byte* to,
                 std::span<const std::byte> data, Progress& answer) {
  const DirectSide& side = *operation.side;
  SharedWord& writes = operation.stream->mine->writes;
  writes.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool written = !side.poisoned() && side.write_memory(target, to, data);
  writes.store(0, std::memory_order_release);
  if (written) return true;
  answer = operation.fail(
      side.poisoned() ? poison_error(side)
                      : world_error(fmt::format("the memory of rank {} cannot be written any more", target)));
  return false;
}

}  // namespace

bool is_handed(const DirectOperation& operation, std::int32_t giver) {
  const DirectSource& source = operation.sources[static_cast<std::size_t>(giver)];
  return source.hands &&
         (operation.output_offered || (operation.output_there && source.offer == Offer::memory));
}

std::size_t bytes_to_take(const DirectOperation& operation, std::int32_t giver) {
  const std::size_t bytes = operation.blocks.bytes(giver, operation.side->rank);
  return is_handed(operation, giver) ? begin_of_share(bytes, operation.side->ranks) : bytes;
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
    const bool through_kernel = source->output_there != nullptr && operation.offer == Offer::memory;
    if ((source->output == nullptr && !through_kernel) || from == bytes) continue;
    const std::size_t now = std::min(bytes - from, static_cast<std::size_t>(side.tuning.piece_bytes));
    const std::byte* const data = operation.input() + blocks.sent_at(side.rank, target) + from;
    if (through_kernel) {
      if (!write_there(operation, target, source->output_there + from, {data, now}, answer)) return false;
    } else if (operation.non_temporal) {
      device::cpu::copy_non_temporal(source->output + from, data, now);
    } else {
      std::memcpy(source->output + from, data, now);
    }
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
