// weft/communication/comm/engine.h -- the calls of one communicator that are in flight, and the
// threads that drive them.
//
//   high    [all_reduce 3/8]                      step() runs the first call that can progress, by priority:
//   normal  [all_gather 1/64] [broadcast queued]  the choice is made again after every fragment
//   low     [all_reduce 900/4096]
//
// Waiting threads move the bytes. While no thread waits, a background thread does, if enabled; it
// sleeps whenever no progress is possible. A call made while no other is in flight is driven
// directly and not queued.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/comm/deadline.h"
#include "weft/communication/comm/failure.h"
#include "weft/communication/comm/flight_recorder.h"
#include "weft/communication/comm/metrics.h"
#include "weft/communication/comm/runner.h"

namespace weft::comm {

class Engine;

struct Work::State {
  std::shared_ptr<Engine> engine;
  std::uint64_t number = 0;
  std::atomic<bool> done{false};
  Status status;  // written before `done`
  std::function<void(const Status&)> on_done;
  std::function<bool()> cancel;  // set by the communicator: asks all ranks
};

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::uint64_t group = 0;
    std::int32_t ranks = 1;
    std::shared_ptr<Metrics> metrics;  // null: no metrics
    bool background = true;
    // Called once for a collective without progress for a while (kStuck), and for one that failed
    // without knowing what the peer called.
    std::function<void(const Call& call, std::uint64_t number)> on_stuck;
    // Called when a call fails on this rank, to notify the other ranks.
    std::function<void(const Error& error, Cause cause)> on_failure;
    // Whether a call must stay queued for now.
    std::function<bool(std::uint64_t number)> is_held;
  };
  static constexpr std::chrono::milliseconds kStuck{100};

  Engine(Options options, FlightRecorder& recorder);
  ~Engine();

  // Runs a call to completion on this thread.
  Status run(Runner& runner, const Call& call, std::uint64_t number);
  // Starts a call; `state` is marked done with it. The call's `counts` are copied.
  void start(Runner& runner, const Call& call, std::uint64_t number, std::shared_ptr<Work::State> state);
  void wait_for(const Work::State& state);
  // Waits until the deadline at the latest; returns whether the call is done. If not, the call goes
  // on.
  bool wait_until(const Work::State& state, Moment deadline);

  // Fails all current and later calls with this error; the first error is kept. From any thread.
  void fail(Error error, Cause cause = Cause::fault);
  bool failing() const { return failure_.is_set(); }
  std::optional<Error> failure() const { return failure_.error(); }
  Cause cause() const { return failure_.cause(); }  // of the failure
  // For a call that could not start: asks the other ranks what they called, then fails the group.
  Error give_up(const Call& call, std::uint64_t number, Error error);
  // For a rank that left cleanly: only calls that keep waiting for it fail.
  void expect_failure(std::int32_t rank, Error error) { failure_.expect(rank, std::move(error)); }

  bool is_queued(std::uint64_t number) const;
  void look_again();    // re-checks calls held by is_held()
  void begin_opened();  // starts calls that waited for their runner and sends their first fragment
  // Removes a call from the queue unless it has started. The call is then done, with `error`.
  bool withdraw(std::uint64_t number, const Error& error);

  // Fails all calls in flight; no call starts afterwards.
  void stop();

 private:
  struct Entry {
    Call call;
    std::vector<std::int64_t> counts;
    Runner* runner = nullptr;
    Operation* operation = nullptr;  // null: queued
    std::uint64_t number = 0;
    std::uint64_t flight = 0;
    std::shared_ptr<Work::State> state;
    bool stuck_told = false;
    bool waited = false;
    std::int64_t began_at = 0;  // ticks
    Moment deadline = Moment::max();
  };
  class StallTimer;
  class SleeperEntry;
  using Lock = std::unique_lock<std::mutex>;

  Status drive(Runner& runner, Operation& operation, const Call& call, std::uint64_t number,
               std::uint64_t flight, bool& waited);
  bool progress();  // advances the highest-priority call that can progress; false: none can
  void begin_queued();
  void complete(Entry& entry, Status status, Stage stage);
  void fail_all();
  Error explain(const Call& call, std::uint64_t number, Error error);
  // Fails the group, on all ranks, because the call timed out.
  void give_up_late(const Call& call, std::int32_t waits_for);
  Error why(Runner& runner, const Call& call, std::uint64_t number, Operation& operation);
  void wake_sleepers();
  void hand_out(Lock& lock);  // calls on_done of completed calls, without the lock
  void rest(Lock& lock, StallTimer& blockage);
  void tell_stuck(const StallTimer& blockage);
  void count(const Call& call, std::int64_t bytes, std::int64_t began_at, bool waited, bool failed);
  void run_background();
  // Records the call. Most calls are like the previous one: only differences are written.
  std::uint64_t record(const Call& call, std::uint64_t number, Stage stage, std::string_view algorithm);
  bool is_like_latest(const Call& call, Stage stage, std::string_view algorithm) const;
  std::vector<Source*> sources() const;

  Options options_;
  FlightRecorder& recorder_;
  Flight latest_;                  // the last one recorded
  std::int64_t latest_bytes_ = 0;  // its size

  mutable std::mutex mutex_;
  std::array<std::deque<std::unique_ptr<Entry>>, kPriorities> entries_;
  std::atomic<std::size_t> under_way_{0};  // grows only where calls are made: one thread at a time
  std::vector<std::unique_ptr<Entry>> completed_;
  std::int32_t drivers_ = 0;  // threads in wait_for()
  bool stopped_ = false;
  std::vector<Source*> asleep_on_;  // one source per sleeping thread

  Failure failure_;

  std::condition_variable work_;
  std::thread background_;
};

}  // namespace weft::comm
