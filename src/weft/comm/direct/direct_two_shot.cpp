// Large sums that all (or the root) want whole: each rank combines its share of every piece, then hands it
// on.
//
//   slot of rank 1, 3 ranks   | share 0: for rank 0 | share 1: rank 1's result | share 2: for rank 2 |
//
// A rank's own share is read from its own buffer, so its place in the slot is free for the result. Where all
// outputs can be reached, results go straight there and nothing is copied out; an input that can be reached
// is not copied in either. Where private memory is read through the kernel there are no slots at all: inputs
// are fetched from where they are, and results from the outputs of those who made them.
#include <array>
#include <cstring>

#include "weft/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"
#include "weft/device/cpu/reduction.h"

namespace weft::comm {
namespace {

// So much at a time stays in the first cache while it is written to several places.
constexpr std::size_t kStripBytes = 8 << 10;

std::size_t piece_bytes(const DirectOperation& operation, std::uint64_t piece) {
  return std::min(operation.unit, operation.blocks.largest() - piece * operation.unit);
}

// Whole cache lines, so that no two ranks write to one.
Stretch share_of(const DirectOperation& operation, std::uint64_t piece, std::int32_t rank) {
  const std::size_t bytes = piece_bytes(operation, piece);
  const std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  const auto ranks = static_cast<std::size_t>(operation.side->ranks);
  const auto edge = [&](std::size_t index) { return std::min(index * lines / ranks * kCacheLine, bytes); };
  const std::size_t first = edge(static_cast<std::size_t>(rank));
  return {first, edge(static_cast<std::size_t>(rank) + 1) - first};
}

// A rank whose input can be reached only takes the slot, for its results.
void copy_in_share(DirectOperation& operation) {
  const std::uint64_t piece = operation.copied_in++;
  if (operation.offer == Offer::buffer) return;
  const std::int32_t me = operation.side->rank;
  const Stretch own = share_of(operation, piece, me);
  const std::size_t bytes = piece_bytes(operation, piece), after = own.first + own.bytes;
  const std::byte* const from = operation.input() + piece * operation.unit;
  std::byte* const to = operation.slot(me, piece, 0);
  const auto put = [&](std::size_t first, std::size_t last) {
    if (first == last) return;
    if (operation.non_temporal)
      device::cpu::copy_into_caches(to + first, from + first, last - first);
    else
      std::memcpy(to + first, from + first, last - first);
  };
  put(0, own.first);
  put(after, bytes);
  operation.publish(operation.stream->mine->copied_in, operation.copied_in);
}

// Whether piece `combined` of `other`'s input is there; where.
const std::byte* find_input(DirectOperation& operation, std::int32_t other, std::size_t offset,
                            Progress& answer) {
  const DirectSource& source = operation.sources[static_cast<std::size_t>(other)];
  if (is_own(source.offer)) return source.data + operation.combined * operation.unit + offset;
  DirectPeer& peer = operation.peer(other);
  SharedWord& copied_in = DirectLayout::counters(peer.part).copied_in;
  const std::uint64_t needed = operation.first + operation.combined + 1;
  if (!reached(copied_in, peer.copied_in, needed)) {
    answer = operation.blocked(other, copied_in, needed);
    return nullptr;
  }
  return operation.slot(other, operation.combined, offset);
}

bool wants_result(const DirectOperation& operation, std::int32_t rank) {
  return has_output(operation.call, rank);
}

// In whose slot the results of `rank` are: where it has just read, so that it need not fetch other lines to
// write to. Its own where that of the next rank is not in use.
std::int32_t keeper_of(const DirectOperation& operation, std::int32_t rank) {
  const DirectSide& side = *operation.side;
  const std::int32_t next = rank + 1 == side.ranks ? 0 : rank + 1;
  const Offer offer =
      next == side.rank ? operation.offer : operation.sources[static_cast<std::size_t>(next)].offer;
  return offer == Offer::slots ? next : rank;
}

// The sum of `inputs` to all `targets`, and to `kept` unless that is null.
void reduce_share(const DirectOperation& operation, std::span<const void* const> inputs,
                  std::span<void* const> targets, void* kept, std::size_t bytes) {
  const Call& call = operation.call;
  const std::size_t element = device::size_of(call.type);
  if (operation.non_temporal)
    return device::cpu::reduce_non_temporal(call.type, call.op, targets, kept, inputs, bytes / element);
  const auto after = [](const void* begin, std::size_t at) {
    return static_cast<const std::byte*>(begin) + at;
  };
  const auto room_after = [](void* begin, std::size_t at) { return static_cast<std::byte*>(begin) + at; };
  std::array<const void*, transport::kMostLocalRanks> terms;
  void* const first = kept != nullptr ? kept : targets[0];
  for (std::size_t at = 0; at < bytes; at += kStripBytes) {
    const std::size_t now = std::min(kStripBytes, bytes - at);
    for (std::size_t term = 0; term < inputs.size(); ++term) terms[term] = after(inputs[term], at);
    std::byte* const sum = room_after(first, at);
    device::cpu::reduce(call.type, call.op, sum, std::span(terms).first(inputs.size()), now / element);
    if (call.op == ReduceOp::avg)
      device::cpu::finish_average(call.type, sum, now / element, static_cast<std::int64_t>(inputs.size()));
    for (void* const target : targets)
      if (target != first) std::memcpy(room_after(target, at), sum, now);
  }
}

bool combine_share(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  const std::uint64_t piece = operation.combined;
  const Stretch share = share_of(operation, piece, me);
  const Call& call = operation.call;
  std::array<const void*, transport::kMostLocalRanks> inputs;
  std::array<void*, transport::kMostLocalRanks> targets;
  std::size_t target_count = 0;
  const std::size_t offset = piece * operation.unit + share.first;
  if (wants_result(operation, me)) targets[target_count++] = operation.output() + offset;
  const bool copied_out = !operation.push && !operation.reads_through_kernel() &&
                          (call.kind == Kind::all_reduce || me != call.root);
  std::byte* const kept = copied_out ? operation.slot(keeper_of(operation, me), piece, share.first) : nullptr;
  for (std::int32_t other = 0; other < ranks; ++other) {
    const std::byte* const data =
        other == me ? operation.input() + offset : find_input(operation, other, share.first, answer);
    if (data == nullptr) return false;
    inputs[static_cast<std::size_t>(other)] = data;
    if (operation.push && other != me && wants_result(operation, other))
      targets[target_count++] = operation.sources[static_cast<std::size_t>(other)].output + offset;
  }
  for (std::int32_t other = 0; other < ranks; ++other) {
    const void*& input = inputs[static_cast<std::size_t>(other)];
    input = within_reach(operation, other, static_cast<const std::byte*>(input), share.bytes, answer);
    if (input == nullptr) return false;
  }
  reduce_share(operation, std::span(inputs).first(static_cast<std::size_t>(ranks)),
               std::span(targets).first(target_count), kept, share.bytes);
  ++operation.combined;
  if (!operation.push) operation.publish(operation.stream->mine->combined, operation.combined);
  return true;
}

// The other ranks' shares of piece `taken`, one at a time, as far as they are there.
bool copy_out(DirectOperation& operation, Progress& answer) {
  const std::int32_t me = operation.side->rank, ranks = operation.side->ranks;
  bool moved = false;
  for (; operation.next < ranks; ++operation.next) {
    const std::int32_t other = (me + 1 + operation.next) % ranks;
    if (other == me) continue;
    DirectPeer& peer = operation.peer(other);
    SharedWord& combined = DirectLayout::counters(peer.part).combined;
    const std::uint64_t needed = operation.first + operation.taken + 1;
    if (!reached(combined, peer.combined, needed)) {
      answer = operation.blocked(other, combined, needed);
      return moved && answer == Progress::blocked;
    }
    const Stretch share = share_of(operation, operation.taken, other);
    const std::size_t offset = operation.taken * operation.unit + share.first;
    const DirectSource& source = operation.sources[static_cast<std::size_t>(other)];
    const std::byte* const from =
        !operation.reads_through_kernel()
            ? operation.slot(keeper_of(operation, other), operation.taken, share.first)
            : (source.output != nullptr ? source.output : source.output_there) + offset;
    if (!fetch(operation, other, operation.output() + offset, from, share.bytes,
               source.output_there != nullptr, answer))
      return false;
    moved = true;
  }
  return true;
}

// Reads all announcements, which say where inputs are and whether outputs can be reached.
bool know_all(DirectOperation& operation, Progress& answer) {
  bool reachable = operation.output_offered || !wants_result(operation, operation.side->rank);
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    if (other == operation.side->rank) continue;
    const DirectSource* const source = operation.source(other, answer);
    if (source == nullptr) return false;
    reachable &= source->output != nullptr || !wants_result(operation, other);
  }
  operation.push = reachable;
  operation.all_known = true;
  if (operation.reads_through_kernel() || (operation.push && operation.offer == Offer::buffer))
    operation.copied_in = operation.piece_count;  // no slots
  return true;
}

}  // namespace

Progress step_two_shot(DirectOperation& operation) {
  Progress answer = Progress::moved;
  if (!operation.posted && !operation.post(answer)) return answer;
  const std::uint64_t pieces = operation.piece_count;
  const auto try_copy_in = [&] {
    if (operation.copied_in == pieces || (is_own(operation.offer) && !operation.all_known)) return false;
    if (operation.copied_in >= operation.taken + operation.slots) return false;  // results are still there
    if (!slot_is_free(operation, answer)) return false;
    copy_in_share(operation);
    return true;
  };
  // Newer pieces are tried first: what is waited for in the end is what the oldest piece lacks, so that the
  // group as a whole always goes on.
  const bool ahead =
      !operation.side->oversubscribed && operation.copied_in > operation.combined + kPiecesAhead;
  if (!ahead && try_copy_in()) return Progress::moved;
  if (answer == Progress::failed) return answer;
  if (!operation.all_known && !know_all(operation, answer)) return answer;

  const bool copies_out = !operation.push && wants_result(operation, operation.side->rank);
  // Results that nobody has copied wait for their readers in the caches: not too many.
  const bool results_wait =
      operation.reads_through_kernel() && copies_out && operation.combined > operation.taken + kPiecesAhead;
  if (results_wait && copy_out(operation, answer)) {
    if (operation.next == operation.side->ranks) operation.piece_taken();
    return Progress::moved;
  }
  if (answer == Progress::failed) return answer;
  if (operation.combined < operation.copied_in && combine_share(operation, answer)) {
    if (!copies_out) operation.piece_taken();
    return Progress::moved;
  }
  if (answer == Progress::failed) return answer;
  if (operation.taken < operation.combined && copy_out(operation, answer)) {
    if (operation.next == operation.side->ranks) operation.piece_taken();
    return Progress::moved;
  }
  if (answer == Progress::failed || operation.taken < pieces) return answer;
  operation.finish_reading(true);
  if (!is_own(operation.offer) && !operation.push) return operation.done();
  operation.next = 0;
  operation.stage = step_close;
  return step_close(operation);
}

}  // namespace weft::comm
