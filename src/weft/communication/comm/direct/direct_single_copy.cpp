// Decides whether a private buffer is read through the OS kernel: one copy instead of two.
//
// It pays for data movement and for reduce_scatter (1.1 to 2 times as fast from 64 KiB to 16 MiB).
// An all_reduce does not gain, since its shares would have to be read twice: it goes through slots.
#include <algorithm>
#include <bit>

#include "weft/communication/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

constexpr std::size_t kLeastBlock = 16 << 10;  // below, the system call dominates
// Whether all ranks can read all memory is first asked at the third staged call, when most ranks
// have tried, and then repeatedly after this many calls.
constexpr std::uint64_t kCallsBeforeAsking = 2, kCallsBetweenQuestions = 8;
// A turn of a trial is long enough to bring the caches into its own steady state. Its first call is
// not timed; the others are timed in pairs.
constexpr std::size_t kTurnBytes = 8 << 20;
constexpr std::uint32_t kShortTurn = 3, kLongTurn = 5;

// Ranks may know different answers until all have tried, so they ask at the same calls.
bool all_agree_to_read(DirectOperation& operation) {
  DirectStream& stream = *operation.stream;
  if (stream.reading.agreed) return true;
  const bool seen = operation.side->reach.all_can_read();
  if (stream.staged.calls() < kCallsBeforeAsking) return false;
  const std::uint64_t since = stream.staged.calls() - kCallsBeforeAsking;
  if (since % kCallsBetweenQuestions != 0) return false;
  const std::uint64_t question = since / kCallsBetweenQuestions;
  auto& agreed = operation.side->facts().agreed[stream.priority];
  return stream.reading.agreed = decide_first(agreed.readable[question % 2], question + 1, seen ? 1 : 0) != 0;
}

bool may_be_read(const DirectOperation& operation) {
  const Kind kind = operation.call.kind;
  if (kind == Kind::all_reduce || kind == Kind::reduce) return false;
  // The fragment size of a reduction must be the same on all ranks, whatever their buffers are.
  if (collective::reduces(kind)) return true;
  const DirectSide& side = *operation.side;
  return !operation.plan.overwrites &&
         !side.reach.find(operation.call.input, operation.blocks.given(side.rank)).has_value();
}

// Calls of similar size share a trial: blocks from kLeastBlock << index up.
bool try_reading(DirectOperation& operation) {
  DirectStream& stream = *operation.stream;
  const std::size_t size =
      std::min<std::size_t>(std::bit_width(operation.blocks.largest() / kLeastBlock) - 1, kTrialSizes - 1);
  const std::size_t index = static_cast<std::size_t>(operation.call.kind) * kTrialSizes + size;
  const std::uint32_t turn = kLongTurn * (kLeastBlock << size) <= kTurnBytes ? kLongTurn : kShortTurn;
  DirectTrial& trial = stream.reading.trials[index];
  const DirectTrial::Plan plan =
      trial.next(turn, operation.side->facts().agreed[stream.priority].trials[index]);
  // The time of a call that waits for an earlier one would include that wait.
  if (plan.is_timed && stream.done == operation.sequence) operation.clock.start(trial);
  return plan.kernel;
}

}  // namespace

bool is_read_through_kernel(DirectOperation& operation, const DirectOptions& wish) {
  const DirectSide& side = *operation.side;
  const std::int64_t least = side.tuning.single_copy_bytes;
  const bool asked = wish.way == DirectAlgorithm::single_copy;
  const bool readable = (!side.one_process || asked) && all_agree_to_read(operation);
  // For data movement, only ranks that contribute take part in the trial; a rank that is behind
  // with its questions gets the others' answers.
  if (!collective::reduces(operation.call.kind) && !operation.plan.gives) return false;
  const bool wanted = wish.way ? asked : least >= 0 && wish.in_place.value_or(true);
  if (!readable || !wanted || !may_be_read(operation)) return false;
  if (asked) return true;
  if (least > 0) return static_cast<std::int64_t>(operation.blocks.most_given()) >= least;
  return operation.blocks.largest() >= kLeastBlock && try_reading(operation);
}

void TrialClock::start(DirectTrial& trial) {
  trial_ = &trial;
  begin_ = std::chrono::steady_clock::now();
}

void TrialClock::stop(bool counts) {
  if (counts) trial_->note(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  trial_ = nullptr;
}

}  // namespace weft::comm
