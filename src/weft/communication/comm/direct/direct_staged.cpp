// Data movement and one-shot reductions of any size: each rank fetches the others' data, fragment
// by fragment.
//
//   fragment   0    1    2    3
//   rank 0     in   in   out  in  out ...        in: private buffer -> own slot
//   rank 1        in   out  in  out ...          out: others' slots (or buffers) -> private buffer
#include <array>
#include <cstring>

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

// Bytes per process_vm_readv, since each system call is expensive. (all_to_all of 1 MiB: 1.5 times
// as fast.)
constexpr std::size_t kKernelStretch = 2 << 20;

// The range of a block of `bytes` that is in fragment `piece`.
Stretch stretch_of(const DirectOperation& operation, std::size_t bytes, std::uint64_t piece) {
  const std::size_t unit = operation.cut.unit;
  const std::size_t first = std::min<std::size_t>(piece * unit, bytes);
  return {first, std::min(unit, bytes - first)};
}

// The same for data without slots: several fragments are merged into the first of them.
Stretch long_stretch_of(const DirectOperation& operation, std::size_t bytes, std::uint64_t piece) {
  const std::size_t unit = operation.cut.unit;
  const std::uint64_t together = std::max<std::uint64_t>(kKernelStretch / unit, 1);
  if (piece % together != 0) return {};
  const std::size_t first = std::min<std::size_t>(piece * unit, bytes);
  return {first, std::min(together * unit, bytes - first)};
}

std::size_t part_of_slot(const DirectOperation& operation, std::int32_t target) {
  return operation.blocks.differ_by_target() ? static_cast<std::size_t>(target) * operation.cut.unit : 0;
}

// The target of this rank's block for itself; null if there is nothing to copy.
std::byte* target_of_own(const DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  if (collective::reduces(operation.call.kind) || operation.output() == nullptr ||
      !has_input(operation.call, me) || !has_output(operation.call, me))
    return nullptr;
  std::byte* const target = operation.output() + blocks.landed_at(me, me);
  return target == operation.input() + blocks.sent_at(me, me) ? nullptr : target;
}

// The address of the range that `other` has for this rank in fragment `taken`. If null, blocked()
// or fail() was called.
const std::byte* find_piece(DirectOperation& operation, std::int32_t other, const Stretch& part,
                            Progress& answer) {
  const DirectSource* const source = operation.source(other, answer);
  if (source == nullptr) return nullptr;
  const std::int32_t me = operation.side->rank;
  if (is_own(source->offer)) return source->data + operation.blocks.sent_at(other, me) + part.first;
  DirectPeer& peer = operation.peer(other);
  SharedWord& copied_in = DirectLayout::counters(peer.part).copied_in;
  const std::uint64_t needed = operation.cut.first + operation.cut.taken + 1;
  if (!reached(copied_in, peer.copied_in, needed)) {
    answer = operation.blocked(other, copied_in, needed);
    return nullptr;
  }
  return operation.slot(other, operation.cut.taken, part_of_slot(operation, me));
}

}  // namespace

void StagedStage::copy_in(DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const Blocks& blocks = operation.blocks;
  const std::uint64_t piece = operation.cut.copied_in;
  const auto put = [&](std::int32_t target) {
    const Stretch part = stretch_of(operation, blocks.bytes(side.rank, target), piece);
    if (part.bytes == 0) return;
    std::byte* const to = operation.slot(side.rank, piece, part_of_slot(operation, target));
    const std::byte* const from = operation.input() + blocks.sent_at(side.rank, target) + part.first;
    if (operation.plan.non_temporal)
      device::cpu::copy_into_caches(to, from, part.bytes);
    else
      std::memcpy(to, from, part.bytes);
  };
  if (!blocks.differ_by_target()) {
    put(side.rank);
  } else {
    for (std::int32_t target = 0; target < side.ranks; ++target)
      if (target != side.rank) put(target);
  }
  operation.publish(operation.stream->mine->copied_in, ++operation.cut.copied_in);
}

// Copies part of this rank's block for itself. Done while nothing else can progress; or first if
// peers read the input through the OS kernel, before it is in their caches too.
bool StagedStage::copy_own(DirectOperation& operation) {
  const std::int32_t me = operation.side->rank;
  const Blocks& blocks = operation.blocks;
  std::byte* const target = target_of_own(operation);
  const std::size_t bytes = blocks.bytes(me, me);
  if (target == nullptr || own_copied == bytes) return false;
  const std::size_t now =
      std::min(bytes - own_copied, static_cast<std::size_t>(operation.side->tuning.fragment_bytes));
  std::byte* const to = target + own_copied;
  const std::byte* const from = operation.input() + blocks.sent_at(me, me) + own_copied;
  if (operation.plan.non_temporal)
    device::cpu::copy_non_temporal(to, from, now);
  else
    std::memcpy(to, from, now);
  own_copied += now;
  return true;
}

// Moves the next fragment, one source at a time, as far as the data is available.
bool StagedStage::move_piece(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const Blocks& blocks = operation.blocks;
  bool moved = false;
  for (; next < ranks; ++next) {
    // Ranks start at different peers, to avoid contention on rank 0.
    const std::int32_t other = (me + 1 + next) % ranks;
    if (other == me || !blocks.gives(other)) continue;
    const DirectSource* const source = operation.source(other, answer);
    if (source == nullptr) return moved && answer == Progress::blocked;
    const bool through_kernel = source->offer == Offer::memory;
    const auto cut = through_kernel ? long_stretch_of : stretch_of;
    const Stretch part = cut(operation, blocks.bytes(other, me), operation.cut.taken);
    const std::byte* const data = find_piece(operation, other, part, answer);
    if (data == nullptr) return moved && answer == Progress::blocked;
    if (!fetch(operation, other, operation.output() + blocks.landed_at(other, me) + part.first, data,
               part.bytes, through_kernel, answer))
      return false;
    moved = true;
  }
  next = 0;
  operation.fragment_taken();
  return true;
}

// Reduces the next fragment once all its inputs are available.
bool StagedStage::combine_piece(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const Blocks& blocks = operation.blocks;
  const Call& call = operation.call;
  const Stretch part = stretch_of(operation, blocks.bytes(me, me), operation.cut.taken);
  std::array<const void*, transport::kMostLocalRanks> terms;
  for (std::int32_t other = 0; other < ranks; ++other) {
    const std::byte* const data = other == me ? operation.input() + blocks.sent_at(me, me) + part.first
                                              : find_piece(operation, other, part, answer);
    if (data == nullptr) return false;
    terms[static_cast<std::size_t>(other)] = data;
  }
  for (std::int32_t other = 0; other < ranks; ++other) {
    const void*& term = terms[static_cast<std::size_t>(other)];
    term = within_reach(operation, other, static_cast<const std::byte*>(term), part.bytes, answer);
    if (term == nullptr) return false;
  }
  const std::size_t elements = part.bytes / device::size_of(call.type);
  if (elements != 0) {
    void* const target = operation.output() + part.first;
    const auto all = std::span<const void* const>(terms).first(static_cast<std::size_t>(ranks));
    if (operation.plan.non_temporal) {
      device::cpu::reduce_non_temporal(call.type, call.op, std::span(&target, 1), nullptr, all, elements);
    } else {
      device::cpu::reduce(call.type, call.op, target, all, elements);
      if (call.op == ReduceOp::avg) device::cpu::finish_average(call.type, target, elements, ranks);
    }
  }
  operation.fragment_taken();
  return true;
}

bool slot_is_free(DirectOperation& operation, Progress& answer) {
  const DirectFragments& cut = operation.cut;
  const bool again = cut.copied_in >= cut.slots;
  const std::uint64_t needed = again ? cut.first + cut.copied_in - cut.slots + 1 : cut.half_free_at;
  if (!again && operation.stream->all_finished >= needed) return true;
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    if (other == operation.side->rank) continue;
    if (again && !operation.plan.two_shot && !operation.blocks.takes(other)) continue;
    DirectPeer& peer = operation.peer(other);
    RankCounters& counters = DirectLayout::counters(peer.part);
    SharedWord& word = again ? counters.taken : counters.finished;
    if (reached(word, again ? peer.taken : peer.finished, needed)) continue;
    answer = operation.blocked(other, word, needed);
    return false;
  }
  return true;
}

Progress StagedStage::step(DirectOperation& operation) {
  Progress answer = Progress::moved;
  if (!operation.posted && !operation.post(answer)) return answer;
  const DirectPlan& plan = operation.plan;
  const DirectFragments& cut = operation.cut;
  const bool copies_in = plan.offer == Offer::slots && cut.copied_in < cut.count;
  const bool takes = plan.takes && cut.taken < cut.count;
  const auto try_copy_in = [&] {
    if (!copies_in || !slot_is_free(operation, answer)) return false;
    copy_in(operation);
    return true;
  };
  if (try_copy_in()) return Progress::moved;
  if (answer == Progress::failed) return answer;
  if (plan.offer == Offer::memory && copy_own(operation)) return Progress::moved;
  if (takes && !(plan.overwrites && cut.copied_in <= cut.taken)) {
    const bool reduces = collective::reduces(operation.call.kind);
    if (reduces ? combine_piece(operation, answer) : move_piece(operation, answer)) return Progress::moved;
    if (answer == Progress::failed) return answer;
  }
  if (copy_own(operation)) return Progress::moved;
  // If both block, wait for the older fragment; otherwise the ranks could deadlock.
  if (copies_in && takes && cut.copied_in <= cut.taken && try_copy_in()) return Progress::moved;
  if (copies_in || takes) return answer;
  operation.finish_reading(true);
  return is_own(plan.offer) ? operation.go_on_with(CloseStage{}) : operation.done();
}

}  // namespace weft::comm
