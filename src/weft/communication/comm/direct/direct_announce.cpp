// Announcements: each rank publishes its call and the location of its data before any data moves.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/communication/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

constexpr auto kPlain = std::memory_order_relaxed;             // ordered by `sequence`
constexpr std::uint64_t kHistoryFactor = 0x9e3779b97f4a7c15u;  // odd, with well-mixed bits

// Layout of CallHeader::offer: offer | whether the output is offered | heaps of input and output.
constexpr int kOutputOffered = 8, kInputHeap = 16, kOutputHeap = 32;

std::uint64_t pack_offer(const DirectPlan& plan) {
  const auto heap = [](const DirectGroup::Place& place) {
    return static_cast<std::uint64_t>(static_cast<std::uint16_t>(place.number));
  };
  return static_cast<std::uint64_t>(plan.offer) | (plan.output_offered ? 1u : 0u) << kOutputOffered |
         heap(plan.input_place) << kInputHeap | heap(plan.output_place) << kOutputHeap;
}

std::int32_t heap_of(std::uint64_t offer, int position) {
  return static_cast<std::int32_t>(static_cast<std::int16_t>(offer >> position));
}

std::uint64_t history_after(std::uint64_t before, const Call& call, std::uint64_t what) {
  std::uint64_t history = multiply_fold(before ^ what, kHistoryFactor) + what;
  history = multiply_fold(history ^ static_cast<std::uint64_t>(call.count), kHistoryFactor) + 1;
  return call.counts.empty() ? history : multiply_fold(history ^ fingerprint(call), kHistoryFactor) + 1;
}

// Whether all ranks have finished the first `calls` calls. If false, blocked() was called.
bool all_have_finished(DirectOperation& operation, std::uint64_t calls, Progress& answer) {
  DirectStream& stream = *operation.stream;
  if (stream.all_finished >= calls) return true;
  std::uint64_t least = ~std::uint64_t{0};
  for (std::int32_t other = 0; other < operation.side->ranks; ++other) {
    if (other == operation.side->rank) continue;
    DirectPeer& peer = operation.peer(other);
    SharedWord& finished = DirectLayout::counters(peer.part).finished;
    if (!reached(finished, peer.finished, calls)) {
      answer = operation.blocked(other, finished, calls);
      return false;
    }
    least = std::min(least, peer.finished);
  }
  stream.all_finished = least;
  return true;
}

}  // namespace

bool DirectOperation::post(Progress& answer) {
  DirectStream& my = *stream;
  // Calls of one priority execute one after another.
  if (my.done != sequence) {
    answer = blocked_by_earlier_call();
    return false;
  }
  const std::size_t entry = plan.offer == Offer::mailbox ? blocks.given(side->rank) : 0;
  const MailboxRing::Room room = my.mailbox.room(sequence, entry);
  if (!all_have_finished(*this, room.finished, answer)) return false;
  my.mailbox.take(sequence, room);

  std::byte* const part = peer(side->rank).part;
  CallHeader& header = side->layout.header(part, sequence);
  const std::uint64_t called = what();
  my.history = history_after(my.history, call, called);
  header.history.store(my.history, kPlain);
  header.what.store(called, kPlain);
  header.count.store(static_cast<std::uint64_t>(call.count), kPlain);
  header.call_number.store(call_number, kPlain);
  header.offer.store(pack_offer(plan), kPlain);
  if (plan.offer == Offer::mailbox) {
    const std::uint64_t start = my.mailbox.offset_of(room);
    if (entry > kInlineBytes) header.offsets[0].store(start, kPlain);
    if (entry != 0) std::memcpy(side->layout.entry(part, header, entry, start), call.input, entry);
  } else {
    header.offsets[0].store(plan.input_place.offset, kPlain);
    header.offsets[1].store(plan.output_place.offset, kPlain);
  }
  header.sequence.store(sequence + 1, std::memory_order_release);
  posted = true;
  // No rank waits for one that contributes nothing, except for the location of its output.
  if (plan.gives || plan.output_offered) side->ring_others();
  return true;
}

const DirectSource* DirectOperation::source(std::int32_t other, Progress& answer) {
  DirectSource& known = sources[static_cast<std::size_t>(other)];
  if (known.known_for == sequence + 1) return &known;
  CallHeader& header = side->layout.header(peer(other).part, sequence);
  // A place is not reused before this rank has finished the call, so it never holds a later one.
  if (header.sequence.load(std::memory_order_acquire) != sequence + 1) {
    answer = blocked(other, header.sequence, sequence + 1);
    return nullptr;
  }
  if (header.history.load(kPlain) != stream->history) {
    answer = fail_mismatch(*this, other);
    return nullptr;
  }
  // The peer announced this call, so it has finished the previous one.
  peer(other).finished = std::max(peer(other).finished, sequence);
  const std::uint64_t packed = header.offer.load(kPlain);
  const bool offers_output = (packed >> kOutputOffered & 1) != 0;
  known.offer = static_cast<Offer>(packed & 0xff);
  known.data = nullptr;
  known.output = nullptr;
  if (known.offer == Offer::mailbox) {
    const std::size_t bytes = blocks.given(other);
    const std::uint64_t start = bytes > kInlineBytes ? header.offsets[0].load(kPlain) : 0;
    known.data = side->layout.entry(peer(other).part, header, bytes, start);
  } else {
    const std::uint64_t input = header.offsets[0].load(kPlain);
    if (known.offer == Offer::memory) known.data = reinterpret_cast<const std::byte*>(input);
    if (known.offer == Offer::buffer)
      known.data = side->reach.reach(other, heap_of(packed, kInputHeap), input);
    if (offers_output)
      known.output = side->reach.reach(other, heap_of(packed, kOutputHeap), header.offsets[1].load(kPlain));
    if ((known.offer == Offer::buffer && known.data == nullptr) ||
        (offers_output && known.output == nullptr)) {
      answer = fail(environment_error(
          fmt::format("a buffer of rank {} is in a heap that rank {} has not mapped", other, side->rank)));
      return nullptr;
    }
  }
  known.known_for = sequence + 1;
  return &known;
}

}  // namespace weft::comm
