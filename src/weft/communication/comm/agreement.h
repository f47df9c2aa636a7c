// weft/communication/comm/agreement.h -- control protocol of a communicator: messages on the job's
// control links, beside the collectives.
//
//   stuck      "my call 17 is all_reduce sum f32 x 1024; what is yours?"     detects mismatched calls
//   broken     "the group cannot go on: ..."                                 all ranks report the same cause
//   install    prepare -> ready(at call c) -> commit(from call N)            a new program, without stopping
//   cancel     ask -> can / cannot -> do / leave                             a call that no rank has started
//
// Messages are handled on the job's watcher thread, so ranks that compute answer too.
//
// Installing needs a call number that no rank has passed. On `prepare` a rank reports its current
// call c and promises not to start call c + kWindow before it receives the outcome. So N = max c +
// kWindow is ahead of all ranks. A rank waits only if kWindow calls take less time than a message
// round trip.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/failure.h"
#include "weft/communication/comm/flight_recorder.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

class Engine;

struct Installed {
  std::shared_ptr<const collective::Program> program;
  std::uint64_t from_call = 0;
};

class Agreement : public std::enable_shared_from_this<Agreement> {
 public:
  static constexpr std::uint64_t kWindow = 64;

  // `members` are job ranks in group order; `rank` is this rank's position among them.
  static std::shared_ptr<Agreement> create(std::shared_ptr<transport::Job> job,
                                           std::vector<std::int32_t> members, std::int32_t rank,
                                           std::uint64_t group, const FlightRecorder& recorder);
  void begin(std::shared_ptr<Engine> engine);  // messages are handled from now on
  void end();

  // Returns the number of the next call. Blocks at the end of an installation's window.
  std::uint64_t next_call();
  std::uint64_t calls() const { return next_call_.load(std::memory_order_acquire); }

  void ask_about(const Call& call, std::uint64_t number);
  void tell_broken(const Error& error, Cause cause);

  // `text` is in the format of program_text.h. Returns the call number from which the program is
  // used.
  Result<std::uint64_t> install(const std::string& text);
  // Whether an installed program takes effect at or before call `number` and take_installed() has
  // not returned it yet.
  bool has_news(std::uint64_t number) const { return number >= news_from_.load(std::memory_order_acquire); }
  std::vector<Installed> take_installed(std::uint64_t number);

  // Whether call `number` was cancelled on all ranks.
  bool cancel(std::uint64_t number);
  // Whether the call must not start now because another rank is trying to cancel it.
  bool is_held(std::uint64_t number) const;
  // For a call that was just queued: the ranks may have agreed to cancel it before this rank made
  // it.
  void withdraw_if_cancelled(std::uint64_t number);

 private:
  enum class Message : std::uint64_t {
    stuck = 1,
    broken,
    prepare,
    ready,
    commit,
    abandon,
    ask_cancel,
    can_cancel,
    do_cancel,
    leave_call
  };
  struct Vote {
    std::uint64_t number = 0;
    std::set<std::int32_t> missing;
    std::uint64_t most = 0;  // the highest call number
    std::string refusal;     // the first rank that refused, and why
  };

  Agreement(std::shared_ptr<transport::Job> job, std::vector<std::int32_t> members, std::int32_t rank,
            std::uint64_t group, const FlightRecorder& recorder);

  void tell(std::int32_t rank, Message message, std::span<const std::uint64_t> numbers,
            std::string_view text);
  void tell_all(Message message, std::span<const std::uint64_t> numbers, std::string_view text);
  void receive(std::int32_t from, Message message, std::string_view bytes);

  void answer_stuck(std::int32_t from, std::uint64_t number, std::uint64_t print, std::string_view what);
  void prepare(std::int32_t from, std::uint64_t proposal, std::string_view text);
  void commit(std::uint64_t proposal, std::uint64_t from_call);
  void release(std::uint64_t proposal);
  std::shared_ptr<Vote> open_vote();  // null: another vote is open
  bool wait_for_votes(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Vote>& vote);

  const std::shared_ptr<transport::Job> job_;
  const std::vector<std::int32_t> members_;
  const std::int32_t rank_;
  const std::uint64_t group_;
  const FlightRecorder& recorder_;
  std::shared_ptr<Engine> engine_;

  std::atomic<std::uint64_t> next_call_{0};
  std::atomic<std::uint64_t> hold_at_{UINT64_MAX};
  std::atomic<std::uint64_t> news_from_{UINT64_MAX};
  std::atomic<std::size_t> held_count_{0};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Vote> vote_;  // on this rank's own proposal
  std::uint64_t votes_ = 0;
  std::uint64_t pending_ = 0;  // the proposal this rank is ready for; 0: none
  std::shared_ptr<const collective::Program> pending_program_;
  std::vector<Installed> news_;
  std::set<std::uint64_t> held_;                     // calls with a pending cancel request
  std::map<std::uint64_t, std::int32_t> cancelled_;  // cancelled calls, and the rank that cancelled each
};

}  // namespace weft::comm
