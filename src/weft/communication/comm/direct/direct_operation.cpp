#include "weft/communication/comm/direct/direct_operation.h"

#include <algorithm>
#include <variant>

namespace weft::comm {

Progress DirectOperation::step() {
  if (!failure.message.empty()) return Progress::failed;
  return std::visit([this](auto& now) { return now.step(*this); }, stage);
}

std::int64_t DirectOperation::pieces() const {
  return static_cast<std::int64_t>(std::max<std::uint64_t>(cut.count, 1));
}

std::int64_t DirectOperation::pieces_done() const {
  if (cut.count == 0) return std::holds_alternative<Over>(stage) && failure.message.empty() ? 1 : 0;
  return static_cast<std::int64_t>(plan.takes ? cut.taken : cut.copied_in);
}

void DirectOperation::start(const Call& started, std::uint64_t number, const DirectOptions& wish) {
  active = true;
  call = started;
  call_number = number;
  awaited_rank = -1;
  posted = false;
  blocks.set(call, side->ranks);
  cut.count = cut.copied_in = cut.combined = cut.taken = 0;
  call.kind == Kind::send ? start_send() : start_collective(wish);
}

void DirectOperation::start_collective(const DirectOptions& wish) {
  stream = &side->streams[static_cast<std::size_t>(call.priority)];
  sequence = stream->started++;
  plan_call(*this, wish);
  if (!plan.small) cut_into_pieces(*this);
  if (side->ranks == 1)
    stage = SingleRankStage{};
  else if (plan.small)
    stage = MailboxStage{};
  else if (plan.two_shot)
    stage = TwoShotStage{};
  else
    stage = StagedStage{};
}

void DirectOperation::finish() {
  side->waiting.await_nothing(index);
  if (clock.runs()) {
    const bool alone = stream->started == sequence + 1;
    bool reached_buffers = plan.offer == Offer::buffer;  // then nothing was read through the OS kernel
    for (const DirectSource& source : sources)
      reached_buffers |= source.known_for == sequence + 1 && source.offer == Offer::buffer;
    clock.stop(alone && !reached_buffers && failure.message.empty());
  }
  if (!failure.message.empty()) failure = {};
  stage = Over{};
  active = false;
}

Progress DirectOperation::blocked(std::int32_t other, const SharedWord& word, std::uint64_t value) {
  if (side->poisoned()) return fail(poison_error(*side));
  awaited_rank = other;
  side->waiting.await(index, word, value);
  return Progress::blocked;
}

Progress DirectOperation::blocked_by_earlier_call() {
  if (side->poisoned()) return fail(poison_error(*side));
  awaited_rank = -1;
  return Progress::blocked;
}

Progress DirectOperation::done() {
  side->waiting.await_nothing(index);
  if (stream != nullptr) stream->done = sequence + 1;
  stage = Over{};
  return Progress::done;
}

// Keeps the stage: it may be executing.
Progress DirectOperation::fail(Error error) {
  side->waiting.await_nothing(index);
  failure = std::move(error);
  return Progress::failed;
}

void DirectOperation::publish(SharedWord& counter, std::uint64_t pieces_of_call) {
  counter.store(cut.first + pieces_of_call, std::memory_order_release);
  side->ring_others();
}

void DirectOperation::fragment_taken() {
  ++cut.taken;
  // No rank reads the counter if no slot of this call is reused.
  if (cut.count > cut.slots) publish(stream->mine->taken, cut.taken);
}

void DirectOperation::finish_reading(bool others_wait) {
  stream->mine->finished.store(sequence + 1, std::memory_order_release);
  if (others_wait) side->ring_others();
}

Progress CloseStage::step(DirectOperation& operation) {
  for (; next < operation.side->ranks; ++next) {
    if (next == operation.side->rank || !(operation.plan.two_shot || operation.blocks.takes(next))) continue;
    SharedWord& finished = DirectLayout::counters(operation.peer(next).part).finished;
    if (!reached(finished, operation.peer(next).finished, operation.sequence + 1))
      return operation.blocked(next, finished, operation.sequence + 1);
  }
  return operation.done();
}

}  // namespace weft::comm
