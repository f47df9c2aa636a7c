#include "weft/parallel/pipeline/verify.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace weft::pipeline {
namespace {

// The passes done for one micro-batch at one position.
struct Done {
  bool forward = false, backward = false, weight = false;
};

class Verifier {
 public:
  explicit Verifier(const Schedule& schedule)
      : schedule_(schedule),
        positions_(schedule.positions()),
        done_(static_cast<std::size_t>(schedule.micro_batches) * static_cast<std::size_t>(positions_)) {}

  Status each_once() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) {
      const auto& order = schedule_.orders[static_cast<std::size_t>(stage)];
      for (std::size_t place = 0; place < order.size(); ++place)
        WEFT_TRY_STATUS(take(stage, order[place], place));
    }
    for (std::int32_t micro = 0; micro < schedule_.micro_batches; ++micro)
      for (std::int32_t position = 0; position < positions_; ++position)
        if (const Done& done = of(micro, position); !done.weight) {
          const Kind missing = !done.forward ? Kind::forward : !done.backward ? Kind::backward : Kind::weight;
          return user_error(fmt::format(
              "stage {} never runs {}", schedule_.stage_at(position, micro),
              print({missing, micro, schedule_.chunk_at(position, micro)}, schedule_.chunks > 1)));
        }
    return {};
  }

  // Runs passes while any stage can progress; if some remain, they are deadlocked.
  Status no_deadlock() {
    std::fill(done_.begin(), done_.end(), Done{});
    std::vector<std::size_t> next(schedule_.orders.size(), 0);
    std::vector<std::int32_t> awake;
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) awake.push_back(stage);
    while (!awake.empty()) {
      const std::int32_t stage = awake.back();
      awake.pop_back();
      const auto& order = schedule_.orders[static_cast<std::size_t>(stage)];
      std::size_t& place = next[static_cast<std::size_t>(stage)];
      while (place < order.size() && !waits_for(stage, order[place])) {
        const bool is_pair = schedule_.is_pair(order, place);
        if (is_pair && waits_for(stage, order[place + 1])) break;
        for (const std::size_t after = place + (is_pair ? 2 : 1); place < after; ++place)
          go(stage, order[place], awake);
      }
    }
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) {
      const auto& order = schedule_.orders[static_cast<std::size_t>(stage)];
      const std::size_t place = next[static_cast<std::size_t>(stage)];
      if (place == order.size()) continue;
      const std::size_t waits = waits_for(stage, order[place]) ? place : place + 1;  // this pass, or its pair
      const std::int32_t from = *waits_for(stage, order[waits]);
      return user_error(
          fmt::format("deadlock: stage {} waits at its pass {}, {}, for a message that stage {} sends later",
                      stage, waits + 1, print(order[waits], schedule_.chunks > 1), from),
          "order the passes so that no stage waits for itself");
    }
    return {};
  }

 private:
  void go(std::int32_t stage, const Pass& pass, std::vector<std::int32_t>& awake) {
    const std::int32_t position = schedule_.position(stage, pass);
    mark(pass, of(pass.micro_batch, position));
    if (position > 0) awake.push_back(schedule_.stage_at(position - 1, pass.micro_batch));
    if (position + 1 < positions_) awake.push_back(schedule_.stage_at(position + 1, pass.micro_batch));
  }

  Done& of(std::int32_t micro, std::int32_t position) {
    return done_[static_cast<std::size_t>(micro) * static_cast<std::size_t>(positions_) +
                 static_cast<std::size_t>(position)];
  }

  static void mark(const Pass& pass, Done& done) {
    if (pass.kind == Kind::forward) done.forward = true;
    if (pass.kind == Kind::backward || pass.kind == Kind::whole_backward) done.backward = true;
    if (pass.kind == Kind::weight || pass.kind == Kind::whole_backward) done.weight = true;
  }

  Status take(std::int32_t stage, const Pass& pass, std::size_t place) {
    const auto wrong = [&](std::string_view what) {
      return user_error(fmt::format("{}: {}, pass {} of stage {}", what, print(pass, schedule_.chunks > 1),
                                    place + 1, stage));
    };
    if (pass.micro_batch < 0 || pass.micro_batch >= schedule_.micro_batches)
      return wrong(fmt::format("there are {} micro-batches, counted from 0", schedule_.micro_batches));
    if (pass.chunk < 0 || pass.chunk >= schedule_.chunks)
      return wrong(fmt::format("a stage has {} chunks, counted from 0", schedule_.chunks));
    const std::int32_t position = schedule_.position(stage, pass);
    if (position < 0) return wrong("this micro-batch runs in the other direction");
    Done& done = of(pass.micro_batch, position);
    const bool again = pass.kind == Kind::forward    ? done.forward
                       : pass.kind == Kind::weight   ? done.weight
                       : pass.kind == Kind::backward ? done.backward
                                                     : done.backward || done.weight;
    if (again) return wrong("done twice");
    if (pass.kind != Kind::forward && !done.forward) return wrong("comes before its F");
    if (pass.kind == Kind::weight && !done.backward) return wrong("comes before its B");
    mark(pass, done);
    return {};
  }

  // The stage of an unfinished pass that this one depends on, if any.
  std::optional<std::int32_t> waits_for(std::int32_t stage, const Pass& pass) {
    const std::int32_t position = schedule_.position(stage, pass);
    const std::int32_t micro = pass.micro_batch;
    if (pass.kind == Kind::forward && position > 0 && !of(micro, position - 1).forward)
      return schedule_.stage_at(position - 1, micro);
    const bool goes_back = pass.kind == Kind::backward || pass.kind == Kind::whole_backward;
    if (goes_back && position + 1 < positions_ && !of(micro, position + 1).backward)
      return schedule_.stage_at(position + 1, micro);
    return {};
  }

  const Schedule& schedule_;
  std::int32_t positions_;
  std::vector<Done> done_;
};

}  // namespace

std::vector<double> peak_in_flight(const Schedule& schedule) {
  std::vector<double> peaks;
  for (const auto& order : schedule.orders) {
    std::int64_t held = 0, most = 0;
    for (const Pass& pass : order) {
      if (pass.kind == Kind::forward) most = std::max(most, ++held);
      if (pass.kind == Kind::weight || pass.kind == Kind::whole_backward) --held;
    }
    peaks.push_back(static_cast<double>(most) * schedule.share());
  }
  return peaks;
}

Status verify(const Schedule& schedule, const std::vector<double>& memory) {
  if (schedule.stages < 1 || schedule.micro_batches < 1 || schedule.chunks < 1)
    return user_error(fmt::format("stages, micro-batches and chunks must be at least 1: {}, {}, {}",
                                  schedule.stages, schedule.micro_batches, schedule.chunks));
  if (schedule.orders.size() != static_cast<std::size_t>(schedule.stages))
    return user_error(fmt::format("a schedule needs one order per stage: {} stages, {} orders",
                                  schedule.stages, schedule.orders.size()));
  if (schedule.route == Route::line && schedule.chunks != 1)
    return user_error(fmt::format("on a line a stage has one chunk: {}", schedule.chunks));
  if (schedule.route == Route::both_ways && schedule.chunks != 2)
    return user_error(
        fmt::format("a bidirectional schedule has two chunks per stage, found {}", schedule.chunks));
  Verifier verifier(schedule);
  WEFT_TRY_STATUS(verifier.each_once());
  WEFT_TRY_STATUS(verifier.no_deadlock());
  if (memory.empty()) return {};
  if (memory.size() != 1 && memory.size() != schedule.orders.size())
    return user_error(fmt::format("expected one memory limit or one per stage: {} stages, {} limits",
                                  schedule.stages, memory.size()));
  const std::vector<double> peaks = peak_in_flight(schedule);
  for (std::size_t stage = 0; stage < peaks.size(); ++stage) {
    const double limit = memory[memory.size() == 1 ? 0 : stage];
    if (peaks[stage] > limit + 1e-9)
      return user_error(fmt::format("stage {} holds more micro-batches than its memory allows: {} of {}",
                                    stage, peaks[stage], limit));
  }
  return {};
}

}  // namespace weft::pipeline
