// Failed calls: finds the cause with the help of the other ranks, and fails the group.
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/comm/engine.h"

namespace weft::comm {
namespace {

constexpr std::chrono::milliseconds kExplanation{200};

}  // namespace

// The ranks are out of step: no later result could be right.
Error Engine::why(Runner& runner, const Call& call, std::uint64_t number, Operation& operation) {
  Error error = operation.error();
  if (!runner.reports_both_sides()) error = explain(call, number, std::move(error));
  if (!failing() && options_.on_failure) options_.on_failure(error, Cause::fault);
  return error;
}

// A rank that saw only an unexpected message asks the others what they called and waits briefly for
// an answer. That answer becomes the failure.
Error Engine::explain(const Call& call, std::uint64_t number, Error error) {
  if (!options_.on_stuck || number == kUnnumbered) return error;
  options_.on_stuck(call, number);
  for (const auto deadline = Clock::now() + kExplanation; Clock::now() < deadline && !failing();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error;
}

void Engine::give_up_late(const Call& call, std::int32_t waits_for) {
  if (failing()) return;
  Error error =
      environment_error(fmt::format("{} timed out after {} ms{}", describe(call), call.timeout.count(),
                                    waits_for < 0 ? "" : fmt::format(": waiting for rank {}", waits_for)),
                        "call shrink() to continue with the surviving ranks");
  if (options_.on_failure) options_.on_failure(error, Cause::timeout);
  failure_.set(std::move(error), Cause::timeout);
}

Error Engine::give_up(const Call& call, std::uint64_t number, Error error) {
  std::uint64_t flight = 0;
  {
    const Lock lock(mutex_);
    flight = record(call, number, Stage::running, "");
  }
  error = explain(call, number, std::move(error));
  recorder_.update(flight, Stage::failed, 0, 0, -1);
  if (!failing() && options_.on_failure) options_.on_failure(error, Cause::fault);
  fail(std::move(error));
  return *failure();
}

void Engine::fail(Error error, Cause cause) {
  failure_.set(std::move(error), cause);
  const Lock lock(mutex_);
  wake_sleepers();
}

}  // namespace weft::comm
