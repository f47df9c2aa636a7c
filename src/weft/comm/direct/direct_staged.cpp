// Moves and one-shot reductions of any size: each rank takes what the others give, piece by piece.
//
//   piece      0    1    2    3
//   rank 0     in   in   out  in  out ...        in: private buffer -> own slot
//   rank 1        in   out  in  out ...          out: others' slots (or buffers) -> private buffer
#include <array>
#include <cstring>

#include "weft/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

// Through the kernel so much at a time, since every call of it costs.
constexpr std::size_t kKernelStretch = 2 << 20;

// What of a block of `bytes` is in piece `piece`.
Stretch stretch_of(const DirectOperation& operation, std::size_t bytes, std::uint64_t piece) {
  const std::size_t first = std::min<std::size_t>(piece * operation.unit, bytes);
  return {first, std::min(operation.unit, bytes - first)};
}

// The same where pieces need not be cut as small as slots: all of several at the first of them.
Stretch long_stretch_of(const DirectOperation& operation, std::size_t bytes, std::uint64_t piece) {
  const std::uint64_t together = std::max<std::uint64_t>(kKernelStretch / operation.unit, 1);
  if (piece % together != 0) return {};
  const std::size_t first = std::min<std::size_t>(piece * operation.unit, bytes);
  return {first, std::min(together * operation.unit, bytes - first)};
}

std::size_t part_of_slot(const DirectOperation& operation, std::int32_t target) {
  return operation.blocks.differ_by_target() ? static_cast<std::size_t>(target) * operation.unit : 0;
}

// Where this rank's block for itself goes; null where that is nothing to do.
std::byte* target_of_own(const DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  if (collective::reduces(operation.call.kind) || operation.output() == nullptr ||
      !has_input(operation.call, me) || !has_output(operation.call, me))
    return nullptr;
  std::byte* const target = operation.output() + blocks.landed_at(me, me);
  return target == operation.input() + blocks.sent_at(me, me) ? nullptr : target;
}

void copy_in(DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const Blocks& blocks = operation.blocks;
  const std::uint64_t piece = operation.copied_in;
  std::byte* const own = blocks.differ_by_target() ? nullptr : target_of_own(operation);
  const auto put = [&](std::int32_t target) {
    const Stretch part = stretch_of(operation, blocks.bytes(side.rank, target), piece);
    if (part.bytes == 0) return;
    std::byte* const to = operation.slot(side.rank, piece, part_of_slot(operation, target));
    const std::byte* const from = operation.input() + blocks.sent_at(side.rank, target) + part.first;
    if (!operation.non_temporal) {
      std::memcpy(to, from, part.bytes);
    } else if (own != nullptr && operation.own_copied == part.first) {
      device::cpu::copy_non_temporal_and_cached(own + part.first, to, from, part.bytes);
      operation.own_copied += part.bytes;
    } else {
      device::cpu::copy_into_caches(to, from, part.bytes);
    }
  };
  if (!blocks.differ_by_target()) {
    put(side.rank);
  } else {
    for (std::int32_t target = 0; target < side.ranks; ++target)
      if (target != side.rank) put(target);
  }
  operation.publish(operation.stream->mine->copied_in, ++operation.copied_in);
}

// Where the stretch of piece `taken` that `other` has for this rank is; null, having called blocked() or
// fail(), while it is not there.
const std::byte* find_piece(DirectOperation& operation, std::int32_t other, const Stretch& part,
                            Progress& answer) {
  const DirectSource* const source = operation.source(other, answer);
  if (source == nullptr) return nullptr;
  const std::int32_t me = operation.side->rank;
  if (is_own(source->offer)) return source->data + operation.blocks.sent_at(other, me) + part.first;
  DirectPeer& peer = operation.peer(other);
  SharedWord& copied_in = DirectLayout::counters(peer.part).copied_in;
  const std::uint64_t needed = operation.first + operation.taken + 1;
  if (!reached(copied_in, peer.copied_in, needed)) {
    answer = operation.blocked(other, copied_in, needed);
    return nullptr;
  }
  return operation.slot(other, operation.taken, part_of_slot(operation, me));
}

// The next piece of a move, one source at a time, as far as they are there.
bool move_piece(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const Blocks& blocks = operation.blocks;
  bool moved = false;
  for (; operation.next < ranks; ++operation.next) {
    // Not all from rank 0 at first.
    const std::int32_t other = (me + 1 + operation.next) % ranks;
    if (other == me || !blocks.gives(other)) continue;
    const DirectSource* const source = operation.source(other, answer);
    if (source == nullptr) return moved && answer == Progress::blocked;
    const auto cut = source->offer == Offer::memory ? long_stretch_of : stretch_of;
    const Stretch part = cut(operation, bytes_to_take(operation, other), operation.taken);
    const std::byte* const data = find_piece(operation, other, part, answer);
    if (data == nullptr) return moved && answer == Progress::blocked;
    if (!fetch(operation, other, operation.output() + blocks.landed_at(other, me) + part.first, data,
               part.bytes, source->offer == Offer::memory, answer))
      return false;
    moved = true;
  }
  operation.piece_taken();
  return true;
}

// The next piece of a reduction, when all of it is there.
bool combine_piece(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  const Call& call = operation.call;
  const Stretch part = stretch_of(operation, blocks.bytes(me, me), operation.taken);
  std::array<const void*, transport::kMostLocalRanks> terms;
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    const std::byte* const data = other == me ? operation.input() + blocks.sent_at(me, me) + part.first
                                              : find_piece(operation, other, part, answer);
    if (data == nullptr) return false;
    terms[static_cast<std::size_t>(other)] = data;
  }
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    const void*& term = terms[static_cast<std::size_t>(other)];
    term = within_reach(operation, other, static_cast<const std::byte*>(term), part.bytes, answer);
    if (term == nullptr) return false;
  }
  const std::size_t elements = part.bytes / device::size_of(call.type);
  if (elements != 0) {
    void* const target = operation.output() + part.first;
    const auto all =
        std::span<const void* const>(terms).first(static_cast<std::size_t>(operation.side->ranks));
    if (operation.non_temporal) {
      device::cpu::reduce_non_temporal(call.type, call.op, std::span(&target, 1), nullptr, all, elements);
    } else {
      device::cpu::reduce(call.type, call.op, target, all, elements);
      if (call.op == ReduceOp::avg)
        device::cpu::finish_average(call.type, target, elements, operation.side->ranks);
    }
  }
  operation.piece_taken();
  return true;
}

// A piece of what this rank has for itself: done while there is nothing better to do, or at first where
// others read it through the kernel, before it is in their caches too.
bool copy_own(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  std::byte* const target = target_of_own(operation);
  const std::size_t bytes = blocks.bytes(me, me);
  if (target == nullptr || operation.own_copied == bytes) return false;
  const std::size_t now =
      std::min(bytes - operation.own_copied, static_cast<std::size_t>(operation.side->tuning.piece_bytes));
  std::byte* const to = target + operation.own_copied;
  const std::byte* const from = operation.input() + blocks.sent_at(me, me) + operation.own_copied;
  if (operation.non_temporal)
    device::cpu::copy_non_temporal(to, from, now);
  else
    std::memcpy(to, from, now);
  operation.own_copied += now;
  return true;
}

}  // namespace

bool slot_is_free(DirectOperation& operation, Progress& answer) {
  const std::uint64_t piece = operation.copied_in;
  const bool again = piece >= operation.slots;
  const std::uint64_t needed = again ? operation.first + piece - operation.slots + 1 : operation.half_free_at;
  if (!again && operation.stream->all_finished >= needed) return true;
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    if (other == operation.side->rank) continue;
    if (again && !operation.two_shot && !operation.blocks.takes(other)) continue;
    DirectPeer& peer = operation.peer(other);
    RankCounters& counters = DirectLayout::counters(peer.part);
    SharedWord& word = again ? counters.taken : counters.finished;
    if (reached(word, again ? peer.taken : peer.finished, needed)) continue;
    answer = operation.blocked(other, word, needed);
    return false;
  }
  return true;
}

Progress step_staged(DirectOperation& operation) {
  Progress answer = Progress::moved;
  if (!operation.posted && !operation.post(answer)) return answer;
  const bool copies_in = operation.offer == Offer::slots && operation.copied_in < operation.piece_count;
  const bool takes = operation.takes && operation.taken < operation.piece_count;
  const auto try_copy_in = [&] {
    if (!copies_in || !slot_is_free(operation, answer)) return false;
    copy_in(operation);
    return true;
  };
  // Ahead of what this rank takes by no more than keeps the others busy, lest pieces leave the caches unread.
  const bool ahead =
      takes && !operation.side->oversubscribed && operation.copied_in > operation.taken + kPiecesAhead;
  if (!ahead && try_copy_in()) return Progress::moved;
  if (answer == Progress::failed) return answer;
  if (operation.offer == Offer::memory && copy_own(operation)) return Progress::moved;
  if (takes && !(operation.overwrites && operation.copied_in <= operation.taken)) {
    const bool reduces = collective::reduces(operation.call.kind);
    if (reduces ? combine_piece(operation, answer) : move_piece(operation, answer)) return Progress::moved;
    if (answer == Progress::failed) return answer;
  }
  if (copy_own(operation)) return Progress::moved;
  // Of two things to wait for, the older piece's: else all ranks could wait in a circle.
  if (copies_in && takes && operation.copied_in <= operation.taken && try_copy_in()) return Progress::moved;
  if (copies_in || takes) return answer;
  if (operation.hands) return hand_out(operation, answer) ? Progress::moved : answer;
  operation.finish_reading(true);
  if (operation.takes && is_handed(operation, operation.call.root)) {
    operation.stage = step_await_share;
    return step_await_share(operation);
  }
  if (!is_own(operation.offer)) return operation.done();
  operation.next = 0;
  operation.stage = step_close;
  return step_close(operation);
}

}  // namespace weft::comm
