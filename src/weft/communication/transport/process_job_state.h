// weft/communication/transport/process_job_state.h -- internals of the job in process_job.h.
//
//   process_job.cpp       functions that application threads call
//   process_watcher.cpp   the watcher thread: only it closes links and invokes callbacks
//
// `mutex_` guards everything below it, except the descriptors, which only start() sets. Callbacks
// run without the lock.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/communication/transport/agreement.h"
#include "weft/communication/transport/control_link.h"
#include "weft/communication/transport/inbox.h"
#include "weft/communication/transport/process_job.h"

namespace weft::transport {

class ProcessJob final : public Job {
 public:
  explicit ProcessJob(Circle circle);
  ~ProcessJob() override { ProcessJob::leave(); }
  Status start();

  std::int32_t rank() const override { return rank_; }
  std::int32_t ranks() const override { return static_cast<std::int32_t>(members_.size()); }
  const Member& member(std::int32_t rank) const override {
    return members_.at(static_cast<std::size_t>(rank));
  }
  std::chrono::milliseconds timeout() const override { return timeout_; }
  std::string key(std::string_view purpose) const override;
  bool secure() const override { return traffic_ == Traffic::sealed; }

  Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                       Parcel mine) override;
  void send(std::int32_t to, Topic topic, std::string_view bytes) override;
  void handle(std::uint64_t group, Handler handler) override;
  std::vector<Death> deaths() const override;
  std::uint64_t on_death(DeathListener listener) override;
  void forget(std::uint64_t listener) override;
  Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                       Topic topic) override;
  void on_doctor_query(std::function<std::string()> answer) override;
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  static constexpr std::chrono::milliseconds kLinger{1'000};  // for goodbyes to be sent

  struct Peer {
    ControlLink line;
    const Death* death = nullptr;  // points into deaths_
  };
  struct Listener {
    std::size_t from = 0;  // index of the first failure to report
    std::shared_ptr<const DeathListener> call;
  };
  struct Waiting {  // a thread in exchange(): for `weft doctor`
    Topic topic;
    std::span<const std::int32_t> members;
    Clock::time_point since;
  };

  Peer& peer(std::int32_t rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(std::int32_t rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  Status check_members(std::span<const std::int32_t> members, std::string_view what) const;
  void post(std::int32_t to, FrameKind kind, Topic topic, std::string_view bytes, int file = -1);
  void post(Topic topic, std::vector<Agreement::Message> messages);
  Agreement& agreement(Topic topic);
  std::optional<Error> trouble_with(std::span<const std::int32_t> members) const;

  void wake() const;
  void settle(Lock& lock);  // waits until the current callback has returned

  // Called only by the watcher.
  void watch();
  void call_back(Lock& lock);
  template <class Call>
  void without_lock(Lock& lock, Call call);
  void look_after(std::int32_t rank);
  void take(std::int32_t from, Frame frame);
  void record_failure(Death death);
  void answer_doctor(Lock& lock);
  std::string report() const;
  bool may_stop();
  int patience() const;  // timeout for poll(2)

  const std::int32_t rank_;
  const std::vector<Member> members_;
  const std::string secret_;
  const std::chrono::milliseconds timeout_;
  const Traffic traffic_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::deque<Death> deaths_;  // a deque: addresses stay valid
  Inbox inbox_;
  std::map<std::uint64_t, std::shared_ptr<const Handler>> handlers_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Agreement> agreements_;  // by topic
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t next_listener_ = 1;
  std::size_t announced_ = 0;  // failures already reported to listeners
  std::shared_ptr<const std::function<std::string()>> answer_;
  std::list<Waiting> waiting_;
  std::optional<std::string> given_up_;  // why the others have dropped this rank
  std::uint64_t calls_ = 0;              // callback begins and ends: odd while one runs
  bool leaving_ = false;
  Clock::time_point leave_by_;
  Clock::time_point say_alive_at_ = Clock::now();

  tcp::Socket wake_, doctor_;
  int launcher_ = -1;  // pipe that hangs up when the launcher exits
  std::thread watcher_;
  std::mutex joining_;  // serializes leave()
};

}  // namespace weft::transport
