#include "weft/communication/transport/inproc/room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/communication/transport/rank_names.h"

namespace weft::transport::inproc {
namespace {

// The position of `rank` in `members`.
Result<std::size_t> position(std::span<const std::int32_t> members, std::int32_t rank, std::int32_t ranks) {
  const auto at = std::ranges::lower_bound(members, rank);
  const bool ascending = std::ranges::adjacent_find(members, std::greater_equal<>()) == members.end();
  if (!ascending || at == members.end() || *at != rank || members.front() < 0 || members.back() >= ranks)
    return user_error(
        fmt::format("expected ascending ranks of the job that include this one: got {} for rank {} of {}",
                    name_ranks(members), rank, ranks));
  return static_cast<std::size_t>(at - members.begin());
}

Error lost(const Death& death) {
  if (death.left) return environment_error(fmt::format("rank {} has left the job", death.rank));
  return environment_error(fmt::format("rank {} is lost: {}", death.rank, death.how));
}

Error late(std::span<const std::int32_t> ranks, std::string_view what, std::chrono::milliseconds timeout) {
  return environment_error(
      fmt::format("{} did not join {} within {}", name_ranks(ranks), what, print_time(timeout)),
      "every rank of a group must make the same calls in the same order");
}

int duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

}  // namespace

Room::Room(std::int32_t ranks, std::chrono::milliseconds timeout) : timeout_(timeout) {
  WEFT_CHECK(ranks >= 1);
  members_.assign(static_cast<std::size_t>(ranks), Member{"this process", "", getpid()});
}

Room::Exchange::~Exchange() {
  for (const auto& parcel : parcels)
    if (parcel && parcel->descriptor >= 0) close(parcel->descriptor);
}

const Death* Room::death_of(std::int32_t rank) const {
  const auto found = std::ranges::find(deaths_, rank, &Death::rank);
  return found == deaths_.end() ? nullptr : &*found;
}

Status Room::alive(std::int32_t rank) const {
  if (const Death* death = death_of(rank)) return lost(*death);
  return {};
}

Result<std::vector<Parcel>> Room::exchange(std::int32_t rank, std::span<const std::int32_t> members,
                                           Topic topic, Parcel mine) {
  WEFT_TRY(self, position(members, rank, ranks()));
  if (mine.bytes.size() > Job::kMostBytes)
    return user_error(
        fmt::format("a message is too long: {} bytes, at most {}", mine.bytes.size(), Job::kMostBytes));
  Lock lock(mutex_);
  WEFT_TRY_STATUS(alive(rank));
  if (mine.descriptor >= 0) {
    mine.descriptor = duplicate(mine.descriptor);
    if (mine.descriptor < 0)
      return environment_error(fmt::format("cannot duplicate a descriptor: {}", std::strerror(errno)));
  }
  // With several exchanges of one topic, joins the earliest one that this rank has not joined.
  const Key key{topic.group, topic.number, {members.begin(), members.end()}};
  auto& meetings = exchanges_[key];
  auto place = std::ranges::find_if(meetings, [&](const auto& meeting) { return !meeting->parcels[self]; });
  if (place == meetings.end()) {
    meetings.push_back(std::make_shared<Exchange>());
    place = std::prev(meetings.end());
    (*place)->parcels.resize(members.size());
  }
  const std::shared_ptr<Exchange> meeting = *place;
  meeting->parcels[self] = std::move(mine);
  changed_.notify_all();

  const auto missing = [&] {
    std::vector<std::int32_t> absent;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!meeting->parcels[i]) absent.push_back(members[i]);
    return absent;
  };
  const auto dead = [&](std::int32_t other) { return death_of(other) != nullptr; };
  changed_.wait_for(lock, timeout_, [&] {
    const std::vector<std::int32_t> absent = missing();
    return absent.empty() || dead(rank) || std::ranges::any_of(absent, dead);
  });
  // Complete or failed: no further rank may join it.
  if (const auto known = exchanges_.find(key); known != exchanges_.end()) {
    std::erase(known->second, meeting);
    if (known->second.empty()) exchanges_.erase(known);
  }
  WEFT_TRY_STATUS(alive(rank));
  if (const std::vector<std::int32_t> absent = missing(); !absent.empty()) {
    for (const std::int32_t other : absent) WEFT_TRY_STATUS(alive(other));
    return late(absent, "an exchange", timeout_);
  }
  std::vector<Parcel> all;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Parcel& parcel = *meeting->parcels[i];
    all.push_back({parcel.bytes, i == self || parcel.descriptor < 0 ? -1 : duplicate(parcel.descriptor)});
  }
  return all;
}

void Room::conclude(const Key& key, Agreement& agreement) {
  if (agreement.answer) return;
  const auto& members = std::get<2>(key);
  std::vector<std::int32_t> answer;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool dead = death_of(members[i]) != nullptr;
    if (!agreement.came[i] && !dead) return;
    if (!dead) answer.push_back(members[i]);
  }
  agreement.answer = std::move(answer);
}

Result<std::vector<std::int32_t>> Room::agree(std::int32_t rank, std::span<const std::int32_t> members,
                                              Topic topic) {
  WEFT_TRY(self, position(members, rank, ranks()));
  Lock lock(mutex_);
  WEFT_TRY_STATUS(alive(rank));
  const Key key{topic.group, topic.number, {members.begin(), members.end()}};
  auto& known = agreements_[key];
  if (!known) {
    known = std::make_shared<Agreement>();
    known->came.resize(members.size());
  }
  const std::shared_ptr<Agreement> agreement = known;
  agreement->came[self] = true;
  conclude(key, *agreement);
  changed_.notify_all();
  // If a failure decides the agreement, end() concludes it.
  changed_.wait_for(lock, timeout_,
                    [&] { return agreement->answer.has_value() || death_of(rank) != nullptr; });
  conclude(key, *agreement);  // if it was erased by a rank that timed out, end() missed it
  if (const auto still = agreements_.find(key); still != agreements_.end() && still->second == agreement)
    agreements_.erase(still);
  WEFT_TRY_STATUS(alive(rank));
  if (agreement->answer) return *agreement->answer;
  std::vector<std::int32_t> absent;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!agreement->came[i] && death_of(members[i]) == nullptr) absent.push_back(members[i]);
  return late(absent, "the agreement on survivors", timeout_);
}

void Room::send(std::int32_t from, std::int32_t to, Topic topic, std::string_view bytes) {
  const Lock lock(mutex_);
  WEFT_CHECK(to >= 0 && to < ranks() && bytes.size() <= Job::kMostBytes);
  if (death_of(from) != nullptr || death_of(to) != nullptr) return;
  events_.push_back({.message = Message{from, to, topic, std::string(bytes)}, .told = {}});
  changed_.notify_all();
}

void Room::handle(std::int32_t rank, std::uint64_t group, Job::Handler handler) {
  Lock lock(mutex_);
  const std::pair key{rank, group};
  const void* before = nullptr;
  if (const auto known = handlers_.find(key); known != handlers_.end()) before = known->second.get();
  if (!handler) {
    handlers_.erase(key);
  } else if (death_of(rank) == nullptr) {
    handlers_[key] = std::make_shared<const Job::Handler>(std::move(handler));
    // Earlier messages are delivered before new ones.
    if (auto kept = unclaimed_.extract(key); !kept.empty())
      for (auto message = kept.mapped().rbegin(); message != kept.mapped().rend(); ++message)
        events_.push_front({.message = std::move(*message), .told = {}});
    changed_.notify_all();
  }
  if (before != nullptr) wait_for_watcher(lock, [&] { return running_ == before; });
}

std::vector<Death> Room::deaths(std::int32_t rank) const {
  const Lock lock(mutex_);
  std::vector<Death> others;
  std::ranges::copy_if(deaths_, std::back_inserter(others),
                       [&](const Death& death) { return death.rank != rank; });
  return others;
}

std::uint64_t Room::on_death(std::int32_t rank, Job::DeathListener listener) {
  const Lock lock(mutex_);
  const std::uint64_t number = next_listener_++;
  listeners_[number] = {rank, std::make_shared<const Job::DeathListener>(std::move(listener))};
  return number;
}

void Room::forget(std::uint64_t listener) {
  Lock lock(mutex_);
  const auto known = listeners_.find(listener);
  if (known == listeners_.end()) return;
  const void* const before = known->second.call.get();
  listeners_.erase(known);
  wait_for_watcher(lock, [&] { return running_ == before; });
}

void Room::end(const Death& death) {
  Lock lock(mutex_);
  if (death_of(death.rank) == nullptr) {
    deaths_.push_back(death);
    for (const auto& [number, listener] : listeners_)
      if (listener.rank != death.rank) events_.push_back({.message = {}, .told = Told{number, death}});
    for (const auto& [key, agreement] : agreements_)
      if (std::ranges::binary_search(std::get<2>(key), death.rank)) conclude(key, *agreement);
  }
  std::erase_if(handlers_, [&](const auto& entry) { return entry.first.first == death.rank; });
  std::erase_if(unclaimed_, [&](const auto& entry) { return entry.first.first == death.rank; });
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.rank == death.rank; });
  changed_.notify_all();
  wait_for_watcher(lock, [&] { return running_rank_ == death.rank; });
}

void Room::wait_for_watcher(Lock& lock, const std::function<bool()>& runs) {
  if (std::this_thread::get_id() == watcher_) return;
  changed_.wait(lock, [&] { return !runs(); });
}

void Room::watch() {
  Lock lock(mutex_);
  watcher_ = std::this_thread::get_id();
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || !events_.empty(); });
    if (stopped_) return;
    Event event = std::move(events_.front());
    events_.pop_front();
    run(std::move(event), lock);
  }
}

void Room::run(Event event, Lock& lock) {
  std::function<void()> call;
  std::shared_ptr<const void> function;
  if (event.message) {
    const Message& message = *event.message;
    const std::pair key{message.to, message.topic.group};
    if (death_of(message.to) != nullptr) return;
    const auto handler = handlers_.find(key);
    if (handler == handlers_.end()) {
      unclaimed_[key].push_back(std::move(*event.message));
      return;
    }
    running_rank_ = message.to;
    function = handler->second;
    call = [&message, handle = handler->second] {
      (*handle)(message.from, message.topic.number, message.bytes);
    };
  } else {
    const auto listener = listeners_.find(event.told->listener);
    if (listener == listeners_.end()) return;
    running_rank_ = listener->second.rank;
    function = listener->second.call;
    call = [&told = *event.told, hear = listener->second.call] { (*hear)(told.death); };
  }
  running_ = function.get();
  lock.unlock();
  call();
  // Release the handler's captures before any thread is told that it no longer runs.
  call = nullptr;
  function.reset();
  lock.lock();
  running_ = nullptr;
  running_rank_ = -1;
  changed_.notify_all();
}

void Room::stop() {
  const Lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace weft::transport::inproc
