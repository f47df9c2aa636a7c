// Private buffers read through the kernel: whether that is possible, when it pays, and the reading itself.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "weft/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"

namespace weft::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastBlock = 16 << 10;  // below, a system call is too much of it
// Whether all can read all is asked at the third staged call, by which time most have tried, and then again
// after so many.
constexpr std::uint64_t kCallsBeforeAsking = 2, kCallsBetweenQuestions = 8;
// Up to here it may pay that everyone reduces everything, which saves a wait.
constexpr std::size_t kMostOneShot = 4 << 20;
// Shorter results may still be in a core's own caches when they are used.
constexpr std::size_t kLeastNonTemporal = 2 << 20;
// Longer results are expected to be quicker by non-temporal stores, before that is tried.
constexpr std::size_t kHardlyCached = 16 << 20;
// A turn of a trial: long enough to fill the caches with what it leaves there, but not much longer. The first
// call of a turn finds what another mode left.
constexpr std::size_t kTurnBytes = 8 << 20;
constexpr std::size_t kLeastCallsATurn = 2, kMostCallsATurn = 5, kMostOversubscribedCallsATurn = 9;
static_assert((kMostOversubscribedCallsATurn - 2) * DirectTrial::kRounds <= DirectTrial::kMostTimes);

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

// The ways in which a call can copy.
class Modes {
 public:
  void add(CopyMode mode) { all_[count_++] = mode; }
  std::span<const CopyMode> all() const { return std::span(all_).first(count_); }
  CopyMode last() const { return all_[count_ - 1]; }

 private:
  std::array<CopyMode, kCopyModes> all_ = {CopyMode::slots};
  std::size_t count_ = 1;
};

// Where memory can be read. Who has no output has no place for the shares of a reduce.
void add_kernel_modes(const DirectOperation& operation, Modes& modes) {
  const Kind kind = operation.call.kind;
  if (kind != Kind::reduce) modes.add(CopyMode::kernel);
  if (kind == Kind::all_reduce && operation.side->ranks == 2 && operation.blocks.largest() <= kMostOneShot)
    modes.add(CopyMode::kernel_one_shot);
}

// What a rank that takes writes of blocks of so many bytes.
std::size_t bytes_taken(const DirectOperation& operation, std::size_t block) {
  const Kind kind = operation.call.kind;
  const bool of_all = kind == Kind::all_gather || kind == Kind::gather || kind == Kind::all_to_all;
  return block * (of_all ? static_cast<std::size_t>(operation.side->ranks) : 1);
}

// Calls of about as many bytes are tried together: blocks of kLeastBlock << index and more.
std::size_t size_index(const DirectOperation& operation) {
  const std::size_t block = operation.blocks.largest();
  return std::min<std::size_t>(std::bit_width(block / kLeastBlock) - 1, kTrialSizes - 1);
}

bool results_are_long(const DirectOperation& operation) {
  return device::cpu::kHasNonTemporal && operation.side->tuning.non_temporal_bytes == 0 &&
         operation.blocks.largest() >= kLeastBlock &&
         bytes_taken(operation, kLeastBlock << size_index(operation)) >= kLeastNonTemporal;
}

// What was found for the nearest size, if it can be done here. Ranks that make the same calls know the same
// verdicts.
CopyMode guess_mode(std::span<const DirectTrial> sizes, std::size_t size, std::span<const CopyMode> modes) {
  for (std::size_t away = 1; away < kTrialSizes; ++away) {
    for (const std::size_t other : {size - away, size + away}) {
      const auto verdict = other < kTrialSizes ? sizes[other].verdict() : std::nullopt;
      if (verdict && std::ranges::find(modes, *verdict) != modes.end()) return *verdict;
    }
  }
  return CopyMode::slots;
}

CopyMode try_modes(DirectOperation& operation, const Modes& modes, bool reading) {
  if (modes.all().size() == 1) return CopyMode::slots;
  DirectStream& stream = *operation.stream;
  const std::size_t size = size_index(operation);
  const std::size_t first =
      ((reading ? kTrialKinds : 0) + static_cast<std::size_t>(operation.call.kind)) * kTrialSizes;
  auto& agreed = operation.side->layout.facts(operation.side->base).agreed[stream.priority];
  const bool oversubscribed = operation.side->oversubscribed;
  const DirectTrial::Turn turn = {static_cast<std::uint32_t>(std::clamp(
                                      kTurnBytes / operation.blocks.largest(), kLeastCallsATurn,
                                      oversubscribed ? kMostOversubscribedCallsATurn : kMostCallsATurn)),
                                  oversubscribed};
  DirectTrial& trial = stream.trials[first + size];
  const bool non_temporal = modes.last() == CopyMode::non_temporal &&
                            bytes_taken(operation, kLeastBlock << size_index(operation)) >= kHardlyCached;
  // Then slots alone were never quicker, and such calls are too long to try much.
  const std::span<const CopyMode> tried = non_temporal ? modes.all().subspan(1) : modes.all();
  if (tried.size() == 1) return tried.front();
  const auto guess = [&] {
    return non_temporal ? CopyMode::non_temporal
                        : guess_mode(std::span(stream.trials).subspan(first, kTrialSizes), size, tried);
  };
  const DirectTrial::Plan plan =
      trial.next(tried, turn, agreed.modes[first + size], trial.begun() ? CopyMode::slots : guess());
  // One that waits for another call first would be timed with it.
  operation.trial = plan.is_trial && stream.done == operation.sequence ? &trial : nullptr;
  operation.trial_of_reading = reading;
  if (operation.trial != nullptr) operation.began_at = Clock::now();
  return plan.mode;
}

}  // namespace

CopyMode find_copy_mode(DirectOperation& operation, const DirectWish& wish) {
  const DirectSide& side = *operation.side;
  const DirectTuning& tuning = side.tuning;
  const bool asked = wish.way == DirectWay::single_copy;
  const bool readable = (!side.one_process || asked) && all_can_read_all(operation);
  const bool is_private = !side.find(operation.call.input, operation.blocks.given(side.rank)).has_value();
  // How a reduction is cut must be known to all. What is only moved is its giver's affair: if another has
  // come further with its questions, its answer will do.
  const bool reduces = collective::reduces(operation.call.kind);
  if (!reduces && !operation.gives) return CopyMode::slots;
  const bool wants_read = wish.way ? asked : tuning.single_copy_bytes >= 0 && wish.in_place.value_or(true);
  Modes reading, not_reading;
  if (readable && wants_read && (reduces || (is_private && !operation.overwrites)))
    add_kernel_modes(operation, reading);
  const auto given = static_cast<std::int64_t>(operation.blocks.most_given());
  if (asked || (tuning.single_copy_bytes > 0 && given >= tuning.single_copy_bytes)) return reading.last();
  const auto taken = static_cast<std::int64_t>(bytes_taken(operation, operation.blocks.largest()));
  if (tuning.non_temporal_bytes > 0 && taken >= tuning.non_temporal_bytes) return CopyMode::non_temporal;
  if (tuning.single_copy_bytes > 0 || operation.blocks.largest() < kLeastBlock) return CopyMode::slots;

  const bool may_read = reading.all().size() > 1, is_long = results_are_long(operation);
  CopyMode mode = CopyMode::slots;
  if (may_read) {
    if (is_long) reading.add(CopyMode::non_temporal);
    mode = try_modes(operation, reading, true);
  }
  // Whether the results of a reduction are written by non-temporal stores, each rank decides for itself again.
  if ((!may_read || !is_private) && !reads_memory(mode)) {
    if (is_long) not_reading.add(CopyMode::non_temporal);
    mode = try_modes(operation, not_reading, false);
  }
  return mode;
}

bool writes_non_temporal(const DirectOperation& operation) {
  if (operation.mode == CopyMode::non_temporal) return true;
  // The kernel itself does not. Shares of a result are read by others.
  return reads_memory(operation.mode) && !operation.two_shot && results_are_long(operation);
}

void note_time(DirectOperation& operation) {
  DirectTrial& trial = *std::exchange(operation.trial, nullptr);
  const bool alone = operation.stream->started == operation.sequence + 1;
  bool reached = operation.offer == Offer::buffer;  // then nothing was read through the kernel
  for (const DirectSource& source : operation.sources)
    reached |= source.known_for == operation.sequence + 1 && source.offer == Offer::buffer;
  if (!alone || (reached && operation.trial_of_reading) || !operation.failure.message.empty()) return;
  trial.note(operation.mode, std::chrono::duration<double>(Clock::now() - operation.began_at).count());
}

bool fetch(DirectOperation& operation, std::int32_t other, std::byte* target, const std::byte* data,
           std::size_t bytes, bool through_kernel, Progress& answer) {
  if (bytes == 0) return true;
  const DirectSide& side = *operation.side;
  if (!through_kernel) {
    const bool non_temporal = operation.sources[static_cast<std::size_t>(other)].non_temporal;
    non_temporal ? device::cpu::copy_non_temporal(target, data, bytes)
                 : static_cast<void>(std::memcpy(target, data, bytes));
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
