#include "weft/comm/direct/direct_operation.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/hash.h"

namespace weft::comm {
namespace {

constexpr std::uint64_t kHistoryFactor = 0x9e3779b97f4a7c15u;  // odd, bits well spread

// offer | whether the output is offered | whether it hands out | whether what is taken is written non-temporal |
// heaps of input and output: see CallHeader::offer
std::uint64_t pack_offer(const DirectOperation& operation) {
  const auto heap = [](const DirectGroup::Place& place) {
    return static_cast<std::uint64_t>(static_cast<std::uint16_t>(place.number));
  };
  return static_cast<std::uint64_t>(operation.offer) | (operation.output_offered ? 1u : 0u) << 8 |
         (operation.hands ? 1u : 0u) << 9 | (operation.non_temporal ? 1u : 0u) << 10 |
         heap(operation.input_place) << 16 | heap(operation.output_place) << 32;
}

std::uint64_t history_after(std::uint64_t before, const Call& call, std::uint64_t what) {
  std::uint64_t history = multiply_fold(before ^ what, kHistoryFactor) + what;
  history = multiply_fold(history ^ static_cast<std::uint64_t>(call.count), kHistoryFactor) + 1;
  return call.counts.empty() ? history : multiply_fold(history ^ fingerprint(call), kHistoryFactor) + 1;
}

}  // namespace

Progress DirectOperation::step() {
  if (stage == nullptr) return failure.message.empty() ? Progress::done : Progress::failed;
  return stage(*this);
}

Progress DirectOperation::blocked(std::int32_t other, const SharedWord& word, std::uint64_t value) {
  if (side->poisoned()) return fail(poison_error(*side));
  awaited_rank = other;
  side->core_is_idle.store(false, std::memory_order_relaxed);
  side->await(index, word, value);
  return Progress::blocked;
}

Progress DirectOperation::done() {
  side->await_nothing(index);
  if (stream != nullptr) stream->done = sequence + 1;
  stage = nullptr;
  return Progress::done;
}

Progress DirectOperation::fail(Error error) {
  side->await_nothing(index);
  failure = std::move(error);
  stage = nullptr;
  return Progress::failed;
}

std::int64_t DirectOperation::pieces() const {
  return static_cast<std::int64_t>(std::max<std::uint64_t>(piece_count, 1));
}

std::int64_t DirectOperation::pieces_done() const {
  if (piece_count == 0) return stage == nullptr && failure.message.empty() ? 1 : 0;
  return static_cast<std::int64_t>(takes ? taken : copied_in);
}

MailboxRoom find_room(const DirectStream& stream, std::uint64_t sequence, std::size_t bytes,
                      std::size_t ring) {
  MailboxRoom room{.begin = stream.mailbox_end, .end = stream.mailbox_end, .finished = stream.oldest_entry};
  if (sequence + 1 > kPlaces) room.finished = std::max(room.finished, sequence + 1 - kPlaces);
  if (bytes <= kInlineBytes) return room;
  const std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  const std::size_t left = ring - room.begin % ring;
  if (lines > left) room.begin += left;  // no entry runs over the end of the ring
  room.end = room.begin + lines;
  while (room.finished < sequence && room.end - stream.entry_begins[room.finished % kPlaces] > ring)
    ++room.finished;
  return room;
}

bool DirectOperation::post(Progress& answer) {
  DirectStream& my = *stream;
  // Calls of one priority are done one after another.
  if (my.done != sequence) {
    if (side->poisoned()) {
      answer = fail(poison_error(*side));
    } else {
      awaited_rank = -1;
      answer = Progress::blocked;
    }
    return false;
  }
  const std::size_t entry = offer == Offer::mailbox ? blocks.given(side->rank) : 0;
  const MailboxRoom room = find_room(my, sequence, entry, side->layout.mailbox_bytes());
  if (my.all_finished < room.finished) {
    std::uint64_t least = ~std::uint64_t{0};
    for (std::int32_t other = 0; other < side->ranks; ++other) {
      if (other == side->rank) continue;
      SharedWord& finished = DirectLayout::counters(peer(other).part).finished;
      if (!reached(finished, peer(other).finished, room.finished)) {
        answer = blocked(other, finished, room.finished);
        return false;
      }
      least = std::min(least, peer(other).finished);
    }
    my.all_finished = least;
  }
  my.mailbox_end = room.end;
  my.oldest_entry = room.finished;
  my.entry_begins[sequence % kPlaces] = room.begin;

  constexpr auto relaxed = std::memory_order_relaxed;
  CallHeader& header = side->layout.header(peer(side->rank).part, sequence);
  const std::uint64_t called = what();
  my.history = history_after(my.history, call, called);
  header.history.store(my.history, relaxed);
  header.what.store(called, relaxed);
  header.count.store(static_cast<std::uint64_t>(call.count), relaxed);
  header.call_number.store(call_number, relaxed);
  header.offer.store(pack_offer(*this), relaxed);
  if (offer == Offer::mailbox) {
    const std::uint64_t start = room.begin % side->layout.mailbox_bytes();
    if (entry > kInlineBytes) header.offsets[0].store(start, relaxed);
    if (entry != 0)
      std::memcpy(side->layout.entry(peer(side->rank).part, header, entry, start), call.input, entry);
  } else {
    header.offsets[0].store(input_place.offset, relaxed);
    header.offsets[1].store(output_place.offset, relaxed);
  }
  header.sequence.store(sequence + 1, std::memory_order_release);
  posted = true;
  // Who gives nothing is waited for by nobody, unless for where its output is, if it can be reached at all.
  if (gives || output_offered || handed_out) side->ring_others();
  return true;
}

const DirectSource* DirectOperation::source(std::int32_t other, Progress& answer) {
  DirectSource& known = sources[static_cast<std::size_t>(other)];
  if (known.known_for == sequence + 1) return &known;
  CallHeader& header = side->layout.header(peer(other).part, sequence);
  // A place is not used again before this rank has finished the call: it never holds a later one.
  if (header.sequence.load(std::memory_order_acquire) != sequence + 1) {
    answer = blocked(other, header.sequence, sequence + 1);
    return nullptr;
  }
  constexpr auto relaxed = std::memory_order_relaxed;
  if (header.history.load(relaxed) != stream->history) {
    answer = fail_mismatch(*this, other);
    return nullptr;
  }
  peer(other).finished =
      std::max(peer(other).finished, sequence);  // it came here, so it is through with the last
  const std::uint64_t packed = header.offer.load(relaxed);
  known.offer = static_cast<Offer>(packed & 0xff);
  known.output = nullptr;
  known.output_there = nullptr;
  known.data = nullptr;
  known.hands = (packed >> 9 & 1) != 0;
  known.non_temporal = (packed >> 10 & 1) != 0;
  if (known.offer == Offer::mailbox) {
    const std::size_t bytes = blocks.given(other);
    const std::uint64_t start = bytes > kInlineBytes ? header.offsets[0].load(relaxed) : 0;
    known.data = side->layout.entry(peer(other).part, header, bytes, start);
  } else {
    const auto heap_at = [packed](int shift) {
      return static_cast<std::int32_t>(static_cast<std::int16_t>(packed >> shift));
    };
    const bool offers_output = (packed >> 8 & 1) != 0;
    if (known.offer == Offer::memory)
      known.data = reinterpret_cast<const std::byte*>(header.offsets[0].load(relaxed));
    if (known.offer == Offer::buffer)
      known.data = side->reach(other, heap_at(16), header.offsets[0].load(relaxed));
    if (offers_output) {
      known.output = side->reach(other, heap_at(32), header.offsets[1].load(relaxed));
    } else if (reads_through_kernel() || hands) {
      known.output_there = reinterpret_cast<const std::byte*>(header.offsets[1].load(relaxed));
    }
    if ((known.offer == Offer::buffer && known.data == nullptr) ||
        (offers_output && known.output == nullptr)) {
      answer = fail(world_error(
          fmt::format("a buffer of rank {} is in memory that rank {} was not given", other, side->rank)));
      return nullptr;
    }
  }
  reads_buffers |= is_own(known.offer);
  known.known_for = sequence + 1;
  return &known;
}

void DirectOperation::publish(SharedWord& counter, std::uint64_t pieces_of_call) {
  counter.store(first + pieces_of_call, std::memory_order_release);
  side->ring_others();
}

void DirectOperation::piece_taken() {
  ++taken;
  next = 0;
  // Nobody asks where no slot of this call is used twice.
  if (piece_count > slots) publish(stream->mine->taken, taken);
}

void DirectOperation::finish_reading(bool others_wait) {
  stream->mine->finished.store(sequence + 1, std::memory_order_release);
  if (others_wait) side->ring_others();
}

Progress step_close(DirectOperation& operation) {
  for (; operation.next < operation.side->ranks; ++operation.next) {
    const std::int32_t other = operation.next;
    if (other == operation.side->rank || !(operation.two_shot || operation.blocks.takes(other))) continue;
    SharedWord& finished = DirectLayout::counters(operation.peer(other).part).finished;
    if (!reached(finished, operation.peer(other).finished, operation.sequence + 1))
      return operation.blocked(other, finished, operation.sequence + 1);
  }
  return operation.done();
}

Progress step_nothing(DirectOperation& operation) { return operation.done(); }

}  // namespace weft::comm
