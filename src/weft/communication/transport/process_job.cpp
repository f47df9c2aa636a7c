#include "weft/communication/transport/process_job.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include <fmt/format.h>

#include "weft/base/sha256.h"
#include "weft/communication/transport/doctor.h"
#include "weft/communication/transport/process_job_state.h"
#include "weft/communication/transport/rank_names.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::transport {
namespace {

Error lost_process(const Death& death) {
  if (death.left) return environment_error(fmt::format("rank {} has left the job", death.rank));
  return environment_error(fmt::format("rank {} is lost: {}", death.rank, death.how));
}

}  // namespace

ProcessJob::ProcessJob(Circle circle)
    : rank_(circle.rank),
      members_(std::move(circle.members)),
      secret_(std::move(circle.secret)),
      timeout_(circle.timeout),
      traffic_(circle.traffic),
      peers_(members_.size()) {
  for (std::size_t i = 0; i < circle.lines.size(); ++i) {
    ControlLink& line = peers_[i].line = std::move(circle.lines[i]);
    if (!line || line.local()) continue;
    // Counts from the first unacknowledged heartbeat, which follows the last acknowledged one by at
    // most 1/8 of the timeout.
    const auto patience = static_cast<unsigned>(std::max<std::int64_t>(timeout_.count(), 1));
    ::setsockopt(line.descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
  }
}

Status ProcessJob::start() {
  wake_ = tcp::Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return tcp::socket_error("cannot make the descriptor that wakes a job's watcher", errno);
  doctor_ = open_doctor_socket();
  launcher_ = find_launcher();
  watcher_ = std::thread([this] { watch(); });
  return {};
}

std::string ProcessJob::key(std::string_view purpose) const {
  return hex(bytes_of(hmac_sha256(secret_, purpose)));
}

void ProcessJob::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
}

void ProcessJob::settle(Lock& lock) {
  if (std::this_thread::get_id() == watcher_.get_id()) return;
  if (const std::uint64_t now = calls_; now % 2 == 1) changed_.wait(lock, [&] { return calls_ != now; });
}

void ProcessJob::post(std::int32_t to, FrameKind kind, Topic topic, std::string_view bytes, int file) {
  ControlLink& line = peer(to).line;
  line.send(kind, topic.group, topic.number, bytes, file);
  if (line.has_queued() || line.state() != ControlLink::State::open) wake();
}

void ProcessJob::post(Topic topic, std::vector<Agreement::Message> messages) {
  for (const Agreement::Message& message : messages) {
    post(message.to, FrameKind::agreement, topic, pack(message.word, message.ranks));
  }
}

Status ProcessJob::check_members(std::span<const std::int32_t> members, std::string_view what) const {
  const bool ascending = std::ranges::adjacent_find(members, std::ranges::greater_equal()) == members.end();
  if (ascending && !members.empty() && members.front() >= 0 && members.back() < ranks() &&
      std::ranges::binary_search(members, rank_)) {
    return {};
  }
  return user_error(
      fmt::format("{} needs ascending ranks of the job that include this one: got {} for rank {} of {}", what,
                  name_ranks(members), rank_, ranks()));
}

std::optional<Error> ProcessJob::trouble_with(std::span<const std::int32_t> members) const {
  if (given_up_) return environment_error(fmt::format("the other ranks dropped this rank: {}", *given_up_));
  if (leaving_) return user_error(fmt::format("this rank has left the job: rank {}", rank_));
  for (const Death& death : deaths_) {
    if (std::ranges::binary_search(members, death.rank)) return lost_process(death);
  }
  return {};
}

Result<std::vector<Parcel>> ProcessJob::exchange(std::span<const std::int32_t> members, Topic topic,
                                                 Parcel mine) {
  WEFT_TRY_STATUS(check_members(members, "an exchange"));
  if (mine.bytes.size() > kMostBytes) {
    return user_error(
        fmt::format("a message is too long: {} bytes, at most {}", mine.bytes.size(), kMostBytes));
  }
  const auto since = Clock::now();
  Lock lock(mutex_);
  for (const std::int32_t rank : members) {
    if (rank != rank_) post(rank, FrameKind::parcel, topic, mine.bytes, mine.descriptor);
  }
  const auto here = waiting_.insert(waiting_.end(), {topic, members, since});
  std::optional<Error> error;
  for (bool late = false; !error;) {
    const std::vector<std::int32_t> missing = inbox_.missing(members, rank_, topic);
    if (missing.empty()) break;
    error = trouble_with(missing);
    // A rank may have failed after its parcel arrived here and before it reached the others: the
    // missing ranks have given up in that case.
    for (const Death& death : deaths_)
      if (!error && !death.left && std::ranges::binary_search(members, death.rank))
        error = lost_process(death);
    if (!error && late) {
      error = environment_error(
          fmt::format("{} did not join an exchange within {}", name_ranks(missing), print_time(timeout_)),
          "run weft doctor to see where each rank is");
    }
    if (!error) late = changed_.wait_until(lock, since + timeout_) == std::cv_status::timeout;
  }
  waiting_.erase(here);
  if (error) {
    inbox_.drop(topic);
    return *std::move(error);
  }
  std::vector<Parcel> parcels;
  for (const std::int32_t rank : members) {
    parcels.push_back(rank == rank_ ? Parcel{std::move(mine.bytes), -1} : inbox_.take(rank, topic));
  }
  return parcels;
}

void ProcessJob::send(std::int32_t to, Topic topic, std::string_view bytes) {
  WEFT_CHECK(to >= 0 && to < ranks() && bytes.size() <= kMostBytes);
  const Lock lock(mutex_);
  if (to != rank_) return post(to, FrameKind::message, topic, bytes);
  inbox_.put(rank_, Frame{FrameKind::message, topic.group, topic.number, std::string(bytes), {}});
  wake();
}

void ProcessJob::handle(std::uint64_t group, Handler handler) {
  Lock lock(mutex_);
  if (handlers_.erase(group) > 0) settle(lock);
  if (!handler) return;
  handlers_[group] = std::make_shared<const Handler>(std::move(handler));
  wake();
}

std::vector<Death> ProcessJob::deaths() const {
  const Lock lock(mutex_);
  return {deaths_.begin(), deaths_.end()};
}

std::uint64_t ProcessJob::on_death(DeathListener listener) {
  const Lock lock(mutex_);
  listeners_[next_listener_] = {deaths_.size(), std::make_shared<const DeathListener>(std::move(listener))};
  return next_listener_++;
}

void ProcessJob::forget(std::uint64_t listener) {
  Lock lock(mutex_);
  if (listeners_.erase(listener) > 0) settle(lock);
}

void ProcessJob::on_doctor_query(std::function<std::string()> answer) {
  Lock lock(mutex_);
  answer_ = answer ? std::make_shared<const std::function<std::string()>>(std::move(answer)) : nullptr;
  settle(lock);
}

Agreement& ProcessJob::agreement(Topic topic) {
  const auto [at, fresh] = agreements_.try_emplace({topic.group, topic.number}, rank_);
  if (fresh) {
    for (const Death& death : deaths_) at->second.note_failure(death.rank);
  }
  return at->second;
}

Result<std::vector<std::int32_t>> ProcessJob::agree_on_survivors(std::span<const std::int32_t> members,
                                                                 Topic topic) {
  WEFT_TRY_STATUS(check_members(members, "an agreement"));
  const auto deadline = Clock::now() + timeout_;
  Lock lock(mutex_);
  if (auto error = trouble_with({})) return *std::move(error);
  Agreement& ours = agreement(topic);
  post(topic, ours.begin(members));
  for (bool late = false; !ours.decision() && !late;) {
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
    // A rank that all others have dropped would agree with itself alone.
    if (auto error = trouble_with({})) return *std::move(error);
  }
  if (!ours.decision()) {
    return environment_error(fmt::format("{} did not join the agreement on survivors within {}",
                                         name_ranks(ours.awaited()), print_time(timeout_)),
                             "every survivor must call it; run weft doctor to see where each rank is");
  }
  if (!std::ranges::binary_search(*ours.decision(), rank_)) {
    return environment_error(
        fmt::format("the other ranks dropped this rank and continue as {}", name_ranks(*ours.decision())));
  }
  return *ours.decision();
}

void ProcessJob::leave() {
  {
    const Lock lock(mutex_);
    if (!leaving_) {
      leaving_ = true;
      leave_by_ = Clock::now() + kLinger;
      for (Peer& each : peers_) each.line.send(FrameKind::goodbye, 0, 0, {});
      changed_.notify_all();
      wake();
    }
  }
  if (std::this_thread::get_id() == watcher_.get_id()) return;  // it exits when its handler has returned
  const std::lock_guard one_at_a_time(joining_);
  if (watcher_.joinable()) watcher_.join();
}

Result<std::unique_ptr<Job>> make_process_job(Circle circle) {
  auto job = std::make_unique<ProcessJob>(std::move(circle));
  WEFT_TRY_STATUS(job->start());
  return std::unique_ptr<Job>(std::move(job));
}

}  // namespace weft::transport
