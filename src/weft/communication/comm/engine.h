// weft/communication/comm/engine.h -- the calls of one communicator that are under way, and the threads that drive them.
//
//   high    [all_reduce 3/8]                      step() goes to the first that can move, urgent ones first:
//   normal  [all_gather 1/64] [broadcast queued]  after every piece the choice is made again
//   low     [all_reduce 900/4096]
//
// Threads that wait move the bytes. While none waits, a background thread does, if there is one; it sleeps
// whenever nothing can move. A call that is made while no other is under way is driven at once and enters no
// list.
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
  std::function<bool()> cancel;  // the communicator's: asks all ranks
};

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::uint64_t group = 0;
    std::int32_t ranks = 1;
    std::shared_ptr<Metrics> metrics;  // none: nobody counts
    bool background = true;
    // Called once for a collective that has not moved for a while (kStuck), and for one that failed without
    // knowing what the other side called.
    std::function<void(const Call& call, std::uint64_t number)> on_stuck;
    // Called when a call has failed on this rank, so that the others hear of it.
    std::function<void(const Error& error, Cause cause)> on_failure;
    // Whether a call must stay in the queue for now.
    std::function<bool(std::uint64_t number)> is_held;
  };
  static constexpr std::chrono::milliseconds kStuck{100};

  Engine(Options options, FlightRecorder& recorder);
  ~Engine();

  // Runs a call to its end on this thread.
  Status run(Runner& runner, const Call& call, std::uint64_t number);
  // Begins it. `state` is done when the call is. `counts` of the call are copied.
  void start(Runner& runner, const Call& call, std::uint64_t number, std::shared_ptr<Work::State> state);
  void wait_for(const Work::State& state);
  // The same until then at the latest; whether it is done. Nothing becomes of a call that is not.
  bool wait_until(const Work::State& state, Moment deadline);

  // All calls under way fail with this, and all later ones; the first error stays. From any thread.
  void fail(Error error, Cause cause = Cause::fault);
  bool failing() const { return failure_.is_set(); }
  std::optional<Error> failure() const { return failure_.error(); }
  Cause cause() const { return failure_.cause(); }  // of the failure
  // For a call that could not even begin: the others are asked what they called, and the group fails.
  Error give_up(const Call& call, std::uint64_t number, Error error);
  // The same for a rank that left in peace: only what goes on waiting for it fails.
  void expect_failure(std::int32_t rank, Error error) { failure_.expect(rank, std::move(error)); }

  bool is_queued(std::uint64_t number) const;
  void look_again();    // at what is_held() holds
  void begin_opened();  // starts calls that waited for their runner; the first segment is sent at once
  // Takes a call out of the queue, unless it has begun. It is then done, with `error`.
  bool withdraw(std::uint64_t number, const Error& error);

  // No call is under way or begins afterwards; what was under way fails.
  void stop();

 private:
  struct Entry {
    Call call;
    std::vector<std::int64_t> counts;
    Runner* runner = nullptr;
    Operation* operation = nullptr;  // none: queued
    std::uint64_t number = 0;
    std::uint64_t flight = 0;
    std::shared_ptr<Work::State> state;
    bool stuck_told = false;
    bool waited = false;
    std::int64_t began_at = 0;  // ticks
    Moment deadline = Moment::max();
  };
  class Blockage;
  class SleeperEntry;
  using Lock = std::unique_lock<std::mutex>;

  Status drive(Runner& runner, Operation& operation, const Call& call, std::uint64_t number,
               std::uint64_t flight, bool& waited);
  bool progress();  // moves one piece of the most urgent call that can; false: none can
  void begin_queued();
  void complete(Entry& entry, Status status, Stage stage);
  void fail_all();
  Error explain(const Call& call, std::uint64_t number, Error error);
  // The call is late: the group fails, here and elsewhere.
  void give_up_late(const Call& call, std::int32_t waits_for);
  Error why(Runner& runner, const Call& call, std::uint64_t number, Operation& operation);
  void wake_sleepers();
  void hand_out(Lock& lock);  // calls on_done of what completed, without the lock
  void rest(Lock& lock, Blockage& blockage);
  void tell_stuck(const Blockage& blockage);
  void count(const Call& call, std::int64_t bytes, std::int64_t began_at, bool waited, bool failed);
  void run_background();
  // Writes the call down. Most are like the one before: only what is new is written again.
  std::uint64_t record(const Call& call, std::uint64_t number, Stage stage, std::string_view algorithm);
  bool is_like_latest(const Call& call, Stage stage, std::string_view algorithm) const;
  std::vector<Source*> sources() const;

  Options options_;
  FlightRecorder& recorder_;
  Flight latest_;                  // that was recorded
  std::int64_t latest_bytes_ = 0;  // of it

  mutable std::mutex mutex_;
  std::array<std::deque<std::unique_ptr<Entry>>, kPriorities> entries_;
  std::atomic<std::size_t> under_way_{0};  // grows only where calls are made, which is one thread at a time
  std::vector<std::unique_ptr<Entry>> completed_;
  std::int32_t drivers_ = 0;  // threads in wait_for()
  bool stopped_ = false;
  std::vector<Source*> asleep_on_;  // of each thread that sleeps, its own

  Failure failure_;

  std::condition_variable work_;
  std::thread background_;
};

}  // namespace weft::comm
