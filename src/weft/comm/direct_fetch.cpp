// Private buffers read through the kernel: whether that is possible, when it pays, and the reading itself.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "weft/comm/direct_operation.h"

namespace weft::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastBlock = 16 << 10;  // below, a system call is too much of it
// Whether all can read all is asked at the third staged call, by which time most have tried, and then again
// after so many.
constexpr std::uint64_t kCallsBeforeAsking = 2, kCallsBetweenQuestions = 8;
// Up to here it may pay that everyone reduces everything, which saves a wait.
constexpr std::size_t kMostOneShot = 4 << 20;
// A turn of a trial: long enough to fill the caches with what it leaves there, but not much longer.
constexpr std::size_t kTurnBytes = 8 << 20;
constexpr std::size_t kMostCallsATurn = 4;
static_assert(kMostCallsATurn * DirectTrial::kTurns <= DirectTrial::kMostTimes);

// Of all that is fetched at a time.
constexpr std::size_t kFetchedTogether = 512 << 10, kMostFetched = 256 << 10, kLeastFetched = 32 << 10;

// Two ranks may differ in what they can do until all have asked, so they ask at the same calls.
bool all_can_read_all(DirectOperation& operation) {
  DirectStream& stream = *operation.stream;
  if (stream.readable) return true;
  const bool seen = operation.side->can_read_memory();
  if (stream.staged < kCallsBeforeAsking) return false;
  const std::uint64_t since = stream.staged - kCallsBeforeAsking;
  if (since % kCallsBetweenQuestions != 0) return false;
  const std::uint64_t question = since / kCallsBetweenQuestions;
  auto& agreed = operation.side->layout.facts(operation.side->base).agreed[stream.priority];
  return stream.readable = first_says(agreed.readable[question % 2], question + 1, seen ? 1 : 0) != 0;
}

// The ways in which a call of this kind can copy what is private.
std::span<const CopyMode> modes_of(const DirectOperation& operation) {
  static constexpr std::array<CopyMode, kCopyModes> kAll = {CopyMode::slots, CopyMode::kernel,
                                                            CopyMode::kernel_one_shot};
  const bool all_reduce = operation.call.kind == Kind::all_reduce;
  const bool one_shot =
      all_reduce && operation.side->ranks == 2 && operation.blocks.largest() <= kMostOneShot;
  // Who has no output has no place for the shares of a reduce.
  if (operation.call.kind == Kind::reduce) return std::span(kAll).first(1);
  return std::span(kAll).first(one_shot ? 3 : 2);
}

CopyMode try_modes(DirectOperation& operation, std::span<const CopyMode> modes) {
  DirectStream& stream = *operation.stream;
  // How a reduction is cut must be known to all. What is only moved is its giver's affair: if another has
  // come further with its questions, its answer will do.
  if (!collective::reduces(operation.call.kind)) {
    const DirectSide& side = *operation.side;
    const bool is_private = !side.find(operation.call.input, operation.blocks.given(side.rank)).has_value();
    if (!operation.gives || operation.overwrites || !is_private) return CopyMode::slots;
  }
  const std::size_t block = operation.blocks.largest();
  const auto size = std::min<std::size_t>(std::bit_width(block / kLeastBlock) - 1, kTrialSizes - 1);
  const std::size_t index = static_cast<std::size_t>(operation.call.kind) * kTrialSizes + size;
  auto& agreed = operation.side->layout.facts(operation.side->base).agreed[stream.priority];
  const auto calls =
      static_cast<std::uint32_t>(std::clamp(kTurnBytes / block, std::size_t{1}, kMostCallsATurn));
  DirectTrial& trial = stream.trials[index];
  const DirectTrial::Plan plan = trial.next(modes, calls, agreed.modes[index]);
  // One that waits for another call first would be timed with it.
  if (plan.is_trial && stream.done == operation.sequence) {
    operation.trial = &trial;
    operation.began_at = Clock::now();
  }
  return plan.mode;
}

}  // namespace

CopyMode find_copy_mode(DirectOperation& operation, const DirectWish& wish) {
  const DirectTuning& tuning = operation.side->tuning;
  const std::span<const CopyMode> modes = modes_of(operation);
  if (operation.side->one_process && wish.way != DirectWay::single_copy) return CopyMode::slots;
  const bool readable = all_can_read_all(operation);
  if (!readable || modes.size() == 1) return CopyMode::slots;
  if (wish.way) return *wish.way == DirectWay::single_copy ? modes.back() : CopyMode::slots;
  if (tuning.single_copy_bytes < 0 || !wish.in_place.value_or(true)) return CopyMode::slots;
  if (tuning.single_copy_bytes > 0) {
    const bool long_enough =
        static_cast<std::int64_t>(operation.blocks.most_given()) >= tuning.single_copy_bytes;
    return long_enough ? modes.back() : CopyMode::slots;
  }
  return operation.blocks.largest() < kLeastBlock ? CopyMode::slots : try_modes(operation, modes);
}

void note_time(DirectOperation& operation) {
  DirectTrial& trial = *std::exchange(operation.trial, nullptr);
  const bool alone = operation.stream->started == operation.sequence + 1;
  bool reached = operation.offer == Offer::buffer;  // then nothing was copied in either mode
  for (const DirectSource& source : operation.sources)
    reached |= source.known_for == operation.sequence + 1 && source.offer == Offer::buffer;
  if (!alone || reached || !operation.failure.message.empty()) return;
  trial.note(operation.mode, std::chrono::duration<double>(Clock::now() - operation.began_at).count());
}

bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer) {
  if (bytes == 0) return true;
  const DirectSide& side = *operation.side;
  if (!through_kernel) {
    std::memcpy(target, data, bytes);
    return true;
  }
  if (side.read_memory(other, data, {target, bytes})) return true;
  answer = operation.fail(
      side.poisoned() ? poison_error(side)
                      : world_error(fmt::format("the memory of rank {} cannot be read any more", other)));
  return false;
}

std::size_t bytes_to_fetch(const DirectSide& side) {
  const auto others = static_cast<std::size_t>(std::max(side.ranks - 1, 1));
  return std::clamp(kFetchedTogether / others / kCacheLine * kCacheLine, kLeastFetched, kMostFetched);
}

const std::byte* within_reach(DirectOperation& operation, std::int32_t other, const std::byte* data,
                              std::size_t bytes, Progress& answer) {
  const DirectSide& side = *operation.side;
  if (other == side.rank || operation.sources[static_cast<std::size_t>(other)].offer != Offer::memory)
    return data;
  std::vector<std::byte>& room = operation.stream->fetched;
  const std::size_t each = bytes_to_fetch(side);
  if (room.empty()) room.resize(each * static_cast<std::size_t>(side.ranks));
  std::byte* const here = room.data() + static_cast<std::size_t>(other) * each;
  return fetch(operation, other, here, data, bytes, true, answer) ? here : nullptr;
}

}  // namespace weft::comm
