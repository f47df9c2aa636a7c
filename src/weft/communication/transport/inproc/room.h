// weft/communication/transport/inproc/room.h -- shared state of a set of jobs whose ranks are
// threads.
//
//   rank 0 ─┐  exchange, agree: block here until all have joined
//   rank 1 ─┤                                                     one lock, one condition variable
//   rank 2 ─┘  send, deaths: events, delivered in order by one watcher thread
//
// job.h specifies the operations.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::transport::inproc {

class Room {
 public:
  Room(std::int32_t ranks, std::chrono::milliseconds timeout);

  std::int32_t ranks() const { return static_cast<std::int32_t>(members_.size()); }
  std::chrono::milliseconds timeout() const { return timeout_; }
  const Member& member(std::int32_t rank) const { return members_[static_cast<std::size_t>(rank)]; }

  Result<std::vector<Parcel>> exchange(std::int32_t rank, std::span<const std::int32_t> members, Topic topic,
                                       Parcel mine);
  Result<std::vector<std::int32_t>> agree(std::int32_t rank, std::span<const std::int32_t> members,
                                          Topic topic);

  void send(std::int32_t from, std::int32_t to, Topic topic, std::string_view bytes);
  void handle(std::int32_t rank, std::uint64_t group, Job::Handler handler);

  std::vector<Death> deaths(std::int32_t rank) const;
  std::uint64_t on_death(std::int32_t rank, Job::DeathListener listener);
  void forget(std::uint64_t listener);

  // Records the failure or departure; afterwards no callback of the rank runs.
  void end(const Death& death);

  // Main loop of the watcher thread.
  void watch();
  void stop();

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::vector<std::int32_t>>;
  struct Exchange {
    std::vector<std::optional<Parcel>> parcels;  // owns their descriptors
    ~Exchange();
  };
  struct Agreement {
    std::vector<bool> came;
    std::optional<std::vector<std::int32_t>> answer;
  };
  struct Message {
    std::int32_t from = 0, to = 0;
    Topic topic;
    std::string bytes;
  };
  struct Listener {
    std::int32_t rank = 0;
    std::shared_ptr<const Job::DeathListener> call;
  };
  struct Told {  // a failure to report to one listener
    std::uint64_t listener = 0;
    Death death;
  };
  struct Event {
    std::optional<Message> message;
    std::optional<Told> told;
  };
  using Lock = std::unique_lock<std::mutex>;

  const Death* death_of(std::int32_t rank) const;
  Status alive(std::int32_t rank) const;
  void conclude(const Key& key, Agreement& agreement);
  // Runs the handler of an event, if any, without the lock.
  void run(Event event, Lock& lock);
  // Waits while runs() says that the watcher is running a given callback.
  void wait_for_watcher(Lock& lock, const std::function<bool()>& runs);

  const std::chrono::milliseconds timeout_;
  std::vector<Member> members_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Death> deaths_;  // oldest first
  std::map<Key, std::deque<std::shared_ptr<Exchange>>> exchanges_;
  std::map<Key, std::shared_ptr<Agreement>> agreements_;
  std::map<std::pair<std::int32_t, std::uint64_t>, std::shared_ptr<const Job::Handler>> handlers_;
  std::map<std::pair<std::int32_t, std::uint64_t>, std::deque<Message>>
      unclaimed_;  // without a handler so far
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t next_listener_ = 1;
  std::deque<Event> events_;
  const void* running_ = nullptr;   // the callback that the watcher runs
  std::int32_t running_rank_ = -1;  // its rank
  std::thread::id watcher_;
  bool stopped_ = false;
};

}  // namespace weft::transport::inproc
