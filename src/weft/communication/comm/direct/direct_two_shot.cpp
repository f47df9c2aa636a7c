// Large sums needed whole by all ranks (or the root): each rank reduces its share of every
// fragment, then passes it on.
//
//   slot of rank 1, 3 ranks   | share 0: for rank 0 | share 1: rank 1's result | share 2: for rank 2 |
//
// A rank reads its own share from its own buffer, so its place in the slot is free for the result.
// If all outputs are accessible, results are written straight to them and nothing is copied out. An
// accessible input is not copied in either.
#include <array>
#include <cstring>

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

std::size_t fragment_bytes(const DirectOperation& operation, std::uint64_t piece) {
  return std::min(operation.cut.unit, operation.blocks.largest() - piece * operation.cut.unit);
}

// Whole cache lines, so that no two ranks write to the same one.
Stretch share_of(const DirectOperation& operation, std::uint64_t piece, std::int32_t rank) {
  const std::size_t bytes = fragment_bytes(operation, piece);
  const std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  const auto ranks = static_cast<std::size_t>(operation.side->ranks);
  const auto edge = [&](std::size_t index) { return std::min(index * lines / ranks * kCacheLine, bytes); };
  const std::size_t first = edge(static_cast<std::size_t>(rank));
  return {first, edge(static_cast<std::size_t>(rank) + 1) - first};
}

// A rank with an accessible input only reserves the slot, for its results.
void copy_in_share(DirectOperation& operation) {
  const std::uint64_t piece = operation.cut.copied_in++;
  if (operation.plan.offer == Offer::buffer) return;
  const std::int32_t me = operation.side->rank;
  const Stretch own = share_of(operation, piece, me);
  const std::size_t bytes = fragment_bytes(operation, piece), after = own.first + own.bytes;
  const std::byte* const from = operation.input() + piece * operation.cut.unit;
  std::byte* const to = operation.slot(me, piece, 0);
  const auto put = [&](std::size_t first, std::size_t last) {
    if (first == last) return;
    if (operation.plan.non_temporal)
      device::cpu::copy_into_caches(to + first, from + first, last - first);
    else
      std::memcpy(to + first, from + first, last - first);
  };
  put(0, own.first);
  put(after, bytes);
  operation.publish(operation.stream->mine->copied_in, operation.cut.copied_in);
}

// The address of `other`'s input for fragment `combined`; null if it is not available yet.
const std::byte* find_input(DirectOperation& operation, std::int32_t other, std::size_t offset,
                            Progress& answer) {
  const std::uint64_t piece = operation.cut.combined;
  const DirectSource& source = operation.known(other);
  if (source.offer == Offer::buffer) return source.data + piece * operation.cut.unit + offset;
  DirectPeer& peer = operation.peer(other);
  SharedWord& copied_in = DirectLayout::counters(peer.part).copied_in;
  const std::uint64_t needed = operation.cut.first + piece + 1;
  if (!reached(copied_in, peer.copied_in, needed)) {
    answer = operation.blocked(other, copied_in, needed);
    return nullptr;
  }
  return operation.slot(other, piece, offset);
}

bool wants_result(const DirectOperation& operation, std::int32_t rank) {
  return has_output(operation.call, rank);
}

// The rank whose slot holds the results of `rank`: the next one, whose lines it has just read, so
// that it does not fetch others for writing. Its own slot if the next rank's is unused. (2 ranks,
// private all_reduce of 1 MiB: 1.2 times as fast, of 16 MiB: 1.4; among more ranks 1.05.)
std::int32_t keeper_of(const DirectOperation& operation, std::int32_t rank) {
  const DirectSide& side = *operation.side;
  const std::int32_t next = rank + 1 == side.ranks ? 0 : rank + 1;
  const Offer offer = next == side.rank ? operation.plan.offer : operation.known(next).offer;
  return offer == Offer::slots ? next : rank;
}

// Writes the sum of `inputs` to all `targets`, and to `kept` unless null.
void reduce_share(const DirectOperation& operation, std::span<const void* const> inputs,
                  std::span<void* const> targets, void* kept, std::size_t bytes) {
  const Call& call = operation.call;
  const std::size_t elements = bytes / device::size_of(call.type);
  if (elements == 0) return;
  if (operation.plan.non_temporal)
    return device::cpu::reduce_non_temporal(call.type, call.op, targets, kept, inputs, elements);
  void* const sum = kept != nullptr ? kept : targets[0];
  device::cpu::reduce(call.type, call.op, sum, inputs, elements);
  if (call.op == ReduceOp::avg)
    device::cpu::finish_average(call.type, sum, elements, static_cast<std::int64_t>(inputs.size()));
  for (void* const target : targets)
    if (target != sum) std::memcpy(target, sum, bytes);
}

}  // namespace

bool TwoShotStage::combine_share(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const std::uint64_t piece = operation.cut.combined;
  const Stretch share = share_of(operation, piece, me);
  const Call& call = operation.call;
  std::array<const void*, transport::kMostLocalRanks> inputs;
  std::array<void*, transport::kMostLocalRanks> targets;
  std::size_t target_count = 0;
  const std::size_t offset = piece * operation.cut.unit + share.first;
  if (wants_result(operation, me)) targets[target_count++] = operation.output() + offset;
  const bool copied_out = !push && (call.kind == Kind::all_reduce || me != call.root);
  std::byte* const kept = copied_out ? operation.slot(keeper_of(operation, me), piece, share.first) : nullptr;
  for (std::int32_t other = 0; other < ranks; ++other) {
    const std::byte* const data =
        other == me ? operation.input() + offset : find_input(operation, other, share.first, answer);
    if (data == nullptr) return false;
    inputs[static_cast<std::size_t>(other)] = data;
    if (push && other != me && wants_result(operation, other))
      targets[target_count++] = operation.known(other).output + offset;
  }
  reduce_share(operation, std::span(inputs).first(static_cast<std::size_t>(ranks)),
               std::span(targets).first(target_count), kept, share.bytes);
  ++operation.cut.combined;
  if (!push) operation.publish(operation.stream->mine->combined, operation.cut.combined);
  return true;
}

// Copies out the other ranks' results, one rank at a time, as far as they are available.
bool TwoShotStage::copy_out(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const std::uint64_t piece = operation.cut.taken;
  bool moved = false;
  for (; next < ranks; ++next) {
    const std::int32_t other = (me + 1 + next) % ranks;
    if (other == me) continue;
    DirectPeer& peer = operation.peer(other);
    SharedWord& combined = DirectLayout::counters(peer.part).combined;
    const std::uint64_t needed = operation.cut.first + piece + 1;
    if (!reached(combined, peer.combined, needed)) {
      answer = operation.blocked(other, combined, needed);
      return moved && answer == Progress::blocked;
    }
    const Stretch share = share_of(operation, piece, other);
    fetch(operation, other, operation.output() + piece * operation.cut.unit + share.first,
          operation.slot(keeper_of(operation, other), piece, share.first), share.bytes, false, answer);
    moved = true;
  }
  next = 0;
  operation.fragment_taken();
  return true;
}

// Reads all announcements: the locations of inputs, and whether outputs are accessible.
bool TwoShotStage::know_all(DirectOperation& operation, Progress& answer) {
  bool reachable = operation.plan.output_offered || !wants_result(operation, operation.side->rank);
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    if (other == operation.side->rank) continue;
    const DirectSource* const source = operation.source(other, answer);
    if (source == nullptr) return false;
    reachable &= source->output != nullptr || !wants_result(operation, other);
  }
  push = reachable;
  all_known = true;
  if (push && operation.plan.offer == Offer::buffer)
    operation.cut.copied_in = operation.cut.count;  // no slots
  return true;
}

Progress TwoShotStage::step(DirectOperation& operation) {
  Progress answer = Progress::moved;
  if (!operation.posted && !operation.post(answer)) return answer;
  const DirectFragments& cut = operation.cut;
  const bool reachable = operation.plan.offer == Offer::buffer;
  const auto try_copy_in = [&] {
    if (cut.copied_in == cut.count || (reachable && !all_known)) return false;
    if (cut.copied_in >= cut.taken + cut.slots) return false;  // the slot still holds results
    if (!slot_is_free(operation, answer)) return false;
    copy_in_share(operation);
    return true;
  };
  // Newer fragments are tried first, so that a rank finally blocks on the oldest one. This
  // guarantees progress of the group.
  if (try_copy_in()) return Progress::moved;
  if (answer == Progress::failed) return answer;
  if (!all_known && !know_all(operation, answer)) return answer;

  const bool copies_out = !push && wants_result(operation, operation.side->rank);
  if (cut.combined < cut.copied_in && combine_share(operation, answer)) {
    if (!copies_out) operation.fragment_taken();
    return Progress::moved;
  }
  if (answer == Progress::failed) return answer;
  if (cut.taken < cut.combined && copy_out(operation, answer)) return Progress::moved;
  if (answer == Progress::failed || cut.taken < cut.count) return answer;
  operation.finish_reading(true);
  return reachable || push ? operation.go_on_with(CloseStage{}) : operation.done();
}

}  // namespace weft::comm
