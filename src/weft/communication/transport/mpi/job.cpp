#include "weft/communication/transport/mpi/job.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/communication/transport/doctor.h"
#include "weft/communication/transport/mpi/mailbox.h"
#include "weft/communication/transport/unix_socket.h"
#include "weft/communication/transport/variable.h"

namespace weft::transport::mpi {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr nanoseconds kShortestJobNap{20'000};
constexpr nanoseconds kLongestJobNap{1'000'000};

class MpiJob final : public Job {
 public:
  MpiJob(std::shared_ptr<Library> library, std::chrono::milliseconds timeout)
      : library_(std::move(library)),
        timeout_(timeout),
        mailbox_(std::make_unique<Mailbox>(library_)),
        gone_(static_cast<std::size_t>(library_->ranks())),
        watcher_([this](std::stop_token stop) { watch(stop); }) {}

  ~MpiJob() override { leave(); }

  Status introduce() {
    WEFT_TRY(host, host_identity());
    std::vector<std::int32_t> everyone(static_cast<std::size_t>(ranks()));
    std::iota(everyone.begin(), everyone.end(), 0);
    WEFT_TRY(parcels, exchange(everyone, {}, {fmt::format("{} {}", ::getpid(), host)}));
    for (const Parcel& parcel : parcels) {
      const std::size_t space = parcel.bytes.find(' ');
      if (space == std::string::npos) return environment_error("a rank sent no host name");
      members_.push_back({parcel.bytes.substr(space + 1), "", std::atoll(parcel.bytes.c_str())});
    }
    return {};
  }

  std::int32_t rank() const override { return library_->rank(); }
  std::int32_t ranks() const override { return library_->ranks(); }
  const Member& member(std::int32_t rank) const override {
    return members_.at(static_cast<std::size_t>(rank));
  }
  std::chrono::milliseconds timeout() const override { return timeout_; }

  Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                       Parcel mine) override {
    WEFT_TRY_STATUS(check(members));
    if (mine.bytes.size() > kMostMessageBytes) {
      return user_error(
          fmt::format("an exchange carries at most {} bytes: {}", kMostMessageBytes, mine.bytes.size()));
    }
    tell_others(members, MessageKind::parcel, topic, mine.bytes);
    std::vector<Parcel> parcels;
    const auto deadline = Clock::now() + timeout_;
    for (const std::int32_t member : members) {
      if (member == rank()) {
        parcels.push_back({std::move(mine.bytes)});
        continue;
      }
      WEFT_TRY(came, wait_for(MessageKind::parcel, topic, member, deadline));
      if (!came) return environment_error(fmt::format("rank {} has left the job", member));
      parcels.push_back({std::move(*came)});
    }
    return parcels;
  }

  void send(std::int32_t to, Topic topic, std::string_view bytes) override {
    if (to < 0 || to >= ranks()) return;
    if (to != rank()) return tell(to, MessageKind::message, topic, bytes);
    const std::scoped_lock lock(mutex_);
    file({MessageKind::message, topic, to, std::string(bytes)});
  }

  void handle(std::uint64_t group, Handler handler) override {
    const auto quiet = stop_delivery();
    const std::scoped_lock lock(mutex_);
    if (handler) {
      handlers_[group] = std::move(handler);
    } else {
      handlers_.erase(group);
    }
  }

  std::vector<Death> deaths() const override {
    const std::scoped_lock lock(mutex_);
    return deaths_;
  }

  std::uint64_t on_death(DeathListener listener) override {
    const std::scoped_lock lock(mutex_);
    listeners_.emplace(++last_listener_, std::move(listener));
    return last_listener_;
  }

  void forget(std::uint64_t listener) override {
    const auto quiet = stop_delivery();
    const std::scoped_lock lock(mutex_);
    listeners_.erase(listener);
  }

  // A rank reports survival to all others before it can report its departure, and messages stay in
  // order. So all ranks receive these two in the same order.
  Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                       Topic topic) override {
    WEFT_TRY_STATUS(check(members));
    tell_others(members, MessageKind::survivor, topic, {});
    std::vector<std::int32_t> survivors;
    const auto deadline = Clock::now() + timeout_;
    for (const std::int32_t member : members) {
      if (member != rank()) {
        WEFT_TRY(came, wait_for(MessageKind::survivor, topic, member, deadline));
        if (!came) continue;
      }
      survivors.push_back(member);
    }
    return survivors;
  }

  void on_doctor_query(std::function<std::string()> answer) override {
    const auto quiet = stop_delivery();
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
  }

  void leave() override {
    if (!watcher_.joinable()) return;
    for (std::int32_t to = 0; to < ranks(); ++to) {
      if (to != rank()) tell(to, MessageKind::goodbye, {}, {});
    }
    watcher_.request_stop();
    watcher_.join();
  }

 private:
  using Key =
      std::tuple<MessageKind, std::uint64_t, std::uint64_t, std::int32_t>;  // kind, group, number, from

  Status check(std::span<const std::int32_t> members) const {
    if (std::ranges::is_sorted(members) && std::ranges::binary_search(members, rank()) &&
        members.front() >= 0 && members.back() < ranks()) {
      return {};
    }
    return user_error(fmt::format("expected ascending ranks of the job that include rank {}", rank()));
  }

  void tell_others(std::span<const std::int32_t> members, MessageKind kind, Topic topic,
                   std::string_view bytes) {
    for (const std::int32_t to : members) {
      if (to != rank()) tell(to, kind, topic, bytes);
    }
  }

  void tell(std::int32_t to, MessageKind kind, Topic topic, std::string_view bytes) {
    {
      const std::scoped_lock lock(mutex_);
      if (gone_[static_cast<std::size_t>(to)]) return;
    }
    if (const Status sent = mailbox_->send(to, kind, topic, bytes); !sent.ok()) {
      const std::scoped_lock lock(mutex_);
      record_failure({to, sent.error().message});
    }
  }

  // Receives pending messages. Every waiting thread does this, one at a time, to keep the order.
  void take_in() {
    const std::scoped_lock turn(taking_in_);
    while (std::optional<Message> message = mailbox_->receive()) {
      const std::scoped_lock lock(mutex_);
      file(std::move(*message));
    }
  }

  // REQUIRES: mutex_.
  void file(Message message) {
    switch (message.kind) {
      case MessageKind::parcel:
      case MessageKind::survivor:
        arrived_[{message.kind, message.topic.group, message.topic.number, message.from}].push_back(
            std::move(message.bytes));
        break;
      case MessageKind::message: inbox_[message.topic.group].push_back(std::move(message)); break;
      case MessageKind::goodbye: record_failure({message.from, "it left the job", true}); break;
    }
    news_.notify_all();
  }

  // REQUIRES: mutex_.
  void record_failure(Death death) {
    if (gone_[static_cast<std::size_t>(death.rank)]) return;
    gone_[static_cast<std::size_t>(death.rank)] = true;
    deaths_.push_back(std::move(death));
    news_.notify_all();
  }

  // The contribution of `from` to the topic; empty if it left without one.
  Result<std::optional<std::string>> wait_for(MessageKind kind, Topic topic, std::int32_t from,
                                              Clock::time_point deadline) {
    const Key key{kind, topic.group, topic.number, from};
    for (nanoseconds nap = kShortestJobNap;; nap = std::min(2 * nap, kLongestJobNap)) {
      take_in();
      std::unique_lock lock(mutex_);
      if (const auto found = arrived_.find(key); found != arrived_.end()) {
        std::optional<std::string> bytes = std::move(found->second.front());
        found->second.pop_front();
        if (found->second.empty()) arrived_.erase(found);
        return bytes;
      }
      if (gone_[static_cast<std::size_t>(from)]) return std::optional<std::string>();
      if (Clock::now() >= deadline) {
        return environment_error(fmt::format("rank {} did not join within {}", from,
                                             print_seconds(std::chrono::duration<double>(timeout_).count())));
      }
      news_.wait_for(lock, nap);
    }
  }

  void watch(std::stop_token stop) {
    for (nanoseconds nap = kShortestJobNap; !stop.stop_requested(); nap = std::min(2 * nap, kLongestJobNap)) {
      take_in();
      const bool delivered = deliver();
      answer_doctor();
      if (mailbox_->busy() || delivered) nap = kShortestJobNap;
      std::this_thread::sleep_for(nap);
    }
  }

  // Held while handlers and listeners change, so that a removed one no longer runs; not if a
  // callback makes the change.
  std::unique_lock<std::mutex> stop_delivery() {
    if (std::this_thread::get_id() == watcher_.get_id()) return {};
    return std::unique_lock(delivering_);
  }

  // Invokes handlers and listeners, which may call back into the job: only delivery itself is
  // locked.
  bool deliver() {
    const std::scoped_lock turn(delivering_);
    for (bool any = false;; any = true) {
      std::unique_lock lock(mutex_);
      if (heard_ < deaths_.size()) {
        const Death death = deaths_[heard_++];
        const auto listeners = listeners_;
        lock.unlock();
        for (const auto& [number, listener] : listeners) listener(death);
        continue;
      }
      const auto due =
          std::ranges::find_if(inbox_, [&](const auto& box) { return handlers_.contains(box.first); });
      if (due == inbox_.end()) return any;
      const Handler handler = handlers_.at(due->first);
      const Message message = std::move(due->second.front());
      due->second.pop_front();
      if (due->second.empty()) inbox_.erase(due);
      lock.unlock();
      handler(message.from, message.topic.number, message.bytes);
    }
  }

  void answer_doctor() {
    if (!doctor_) return;
    Result<tcp::Socket> asker = accept_doctor_query(doctor_);
    if (!asker.ok()) doctor_ = {};
    if (!asker.ok() || !*asker) return;
    const std::scoped_lock turn(delivering_);
    std::unique_lock lock(mutex_);
    const std::function<std::string()> answer = answer_;
    lock.unlock();
    const std::string text =
        fmt::format("rank {} of {}, process {}, of an MPI job\n", rank(), ranks(), ::getpid());
    answer_doctor_query(std::move(*asker), answer ? text + answer() : text);
  }

  const std::shared_ptr<Library> library_;
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<Mailbox> mailbox_;
  std::vector<Member> members_;

  std::mutex taking_in_, delivering_;  // lock order: top to bottom
  mutable std::mutex mutex_;           // guards the following members
  std::condition_variable news_;
  std::map<Key, std::deque<std::string>> arrived_;
  std::map<std::uint64_t, std::deque<Message>> inbox_;
  std::map<std::uint64_t, Handler> handlers_;
  std::map<std::uint64_t, DeathListener> listeners_;
  std::uint64_t last_listener_ = 0;
  std::vector<bool> gone_;
  std::vector<Death> deaths_;
  std::size_t heard_ = 0;  // failures reported to listeners
  std::function<std::string()> answer_;
  tcp::Socket doctor_ = open_doctor_socket();  // used by the watcher
  std::jthread watcher_;                       // last: uses the members above
};

}  // namespace

Result<std::unique_ptr<Job>> join(std::shared_ptr<Library> library, std::chrono::milliseconds timeout) {
  if (const std::string_view secure = variable("WEFT_SECURE"); !secure.empty() && secure != "0")
    return user_error("WEFT_SECURE=1 cannot encrypt MPI traffic",
                      "run without MPI: set MASTER_ADDR and MASTER_PORT so that ranks connect directly");
  auto job = std::make_unique<MpiJob>(std::move(library), timeout);
  WEFT_TRY_STATUS(job->introduce());
  return std::unique_ptr<Job>(std::move(job));
}

}  // namespace weft::transport::mpi
