#include "weft/runtime/run/local_ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/communication/transport/rendezvous.h"
#include "weft/runtime/run/complaints.h"
#include "weft/runtime/run/own_ranks.h"
#include "weft/runtime/run/rank_program.h"
#include "weft/runtime/run/summation_server.h"

namespace weft::run {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Job;

// The number of ranks plus summation servers.
std::int32_t everyone_of(const LocalRanksOptions& options) {
  return options.ranks + servers_of(options.algorithms);
}

std::optional<RankFailure> on_threads(const LocalRanksOptions& options, const OwnPart& part,
                                      Complaints& complaints) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto& job : transport::make_thread_jobs(everyone_of(options), options.timeout))
    jobs.push_back(std::move(job));
  const auto play = [&](std::int32_t rank) {
    std::shared_ptr<Job>& job = jobs[static_cast<std::size_t>(rank)];
    const Status status = run_guarded([&] { return part(job); });
    if (!status.ok()) complaints.write(rank, status.error());
    job->leave();
  };
  {
    std::vector<std::jthread> threads;
    for (std::int32_t rank = 1; rank < everyone_of(options); ++rank) threads.emplace_back(play, rank);
    play(0);
  }
  return complaints.first();
}

// The started rank processes.
class Children {
 public:
  ~Children() { end(Clock::now()); }

  void add(std::int32_t rank, pid_t process) { children_.push_back({rank, process}); }

  // Waits for all processes until `deadline`, then kills the rest. Returns the first one found
  // before that which was killed by a signal, or exited with an error code without reporting an
  // error.
  std::optional<RankFailure> end(Clock::time_point deadline, const Complaints* complaints = nullptr) {
    std::optional<RankFailure> lost;
    bool killed = false;
    for (auto pause = std::chrono::microseconds(100);; pause = std::min(pause * 2, kLongestPause)) {
      for (Child& child : children_) {
        int status = 0;
        if (child.process <= 0 || waitpid(child.process, &status, WNOHANG) != child.process) continue;
        child.process = 0;
        if (killed || lost) continue;
        if (WIFSIGNALED(status))
          lost = RankFailure{child.rank, true,
                             environment_error(fmt::format("killed by signal {}", WTERMSIG(status)))};
        else if (WEXITSTATUS(status) != 0 && complaints != nullptr && !complaints->has(child.rank))
          lost = RankFailure{child.rank, true,
                             environment_error(fmt::format("exited with code {}", WEXITSTATUS(status)))};
      }
      std::erase_if(children_, [](const Child& child) { return child.process == 0; });
      if (children_.empty()) return lost;
      if (!killed && Clock::now() >= deadline) {
        for (const Child& child : children_) kill(child.process, SIGKILL);
        killed = true;
      }
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  static constexpr std::chrono::microseconds kLongestPause{10'000};
  struct Child {
    std::int32_t rank = 0;
    pid_t process = 0;
  };
  std::vector<Child> children_;
};

std::optional<RankFailure> on_processes(const LocalRanksOptions& options, const OwnPart& mine,
                                        const RankWork& work, Complaints& complaints) {
  static std::atomic<int> runs{0};  // for unique rendezvous names
  transport::Rendezvous meeting;
  meeting.ranks = everyone_of(options);
  meeting.name = fmt::format("local-{}-{}", getpid(), runs.fetch_add(1));
  meeting.secret = transport::new_secret();
  meeting.timeout = options.timeout;
  Children children;
  const Status started = [&]() -> Status {
    if (meeting.ranks == 1) return {};
    WEFT_TRY(bytes, work.bytes());
    WEFT_TRY(orders, RankInput::make(meeting, work.part, bytes));
    for (std::int32_t rank = 1; rank < meeting.ranks; ++rank) {
      WEFT_TRY(process, orders.start(rank, complaints));
      children.add(rank, process);
    }
    return {};
  }();
  if (!started.ok()) return RankFailure{.rank = 0, .error = started.error()};
  auto joined = transport::join(meeting);
  std::shared_ptr<Job> job = joined.ok() ? std::move(*joined) : nullptr;
  const Status status = joined.ok() ? run_guarded([&] { return mine(job); }) : Status(joined.error());
  // Before the rank leaves, because other ranks report errors when it does.
  if (!status.ok()) complaints.write(0, status.error());
  job.reset();
  const auto lost = children.end(Clock::now() + options.grace, &complaints);
  return lost ? lost : complaints.first();
}

}  // namespace

std::optional<RankFailure> on_local_ranks(const LocalRanksOptions& options, const OwnPart& mine,
                                          const RankWork& work) {
  const auto fail = [](Error error) { return RankFailure{.rank = 0, .error = std::move(error)}; };
  auto launched = launched_job();
  if (!launched.ok()) return fail(std::move(launched).error());
  const std::int32_t everyone = everyone_of(options);
  if (options.ranks < 1 || (*launched == nullptr && everyone > kMostLocalRanks))
    return fail(user_error(
        fmt::format("LOCAL supports 1 to {} ranks and servers, found {}", kMostLocalRanks, everyone)));
  if (*launched != nullptr) {
    const std::shared_ptr<Job>& job = *launched;
    if (everyone > options.ranks)
      return fail(user_error("only LOCAL starts servers; a launcher starts only ranks",
                             "SET parameter_servers = off"));
    if (job->ranks() != options.ranks)
      return fail(
          user_error(fmt::format("the launcher started {} ranks, LOCAL has {}", job->ranks(), options.ranks),
                     fmt::format("ON JOB, or ON LOCAL {}", job->ranks())));
    Status status = run_guarded([&] { return mine(job); });
    if (status.ok()) return std::nullopt;
    return RankFailure{.rank = job->rank(), .error = std::move(status).error()};
  }
  auto complaints = Complaints::make(everyone);
  if (!complaints.ok()) return fail(std::move(complaints).error());
  return options.transport == comm::TransportKind::inproc ? on_threads(options, mine, *complaints)
                                                          : on_processes(options, mine, work, *complaints);
}

namespace {

std::shared_ptr<Job> joined;  // a process joins one job, for its whole lifetime

}  // namespace

bool has_joined() { return joined != nullptr; }

Result<std::shared_ptr<Job>> launched_job() {
  if (joined == nullptr && part_in("", /*counts_ranks=*/false) == Part::launched_rank) {
    WEFT_TRY(job, join_from_environment());
    joined = std::move(job);
  }
  return joined;
}

std::int32_t launched_rank() {
  if (part_in("", /*counts_ranks=*/false) != Part::launched_rank) return 0;
  const auto place = transport::rendezvous_from_environment();
  return place.ok() ? place->rank : 0;
}

std::int32_t launched_ranks() {
  if (part_in("", /*counts_ranks=*/false) != Part::launched_rank) return 1;
  const auto place = transport::rendezvous_from_environment();
  return place.ok() ? place->ranks : 1;
}

std::int64_t launch_restarts() {
  const char* const restarts = std::getenv("WEFT_RESTARTS");
  return restarts == nullptr ? 0 : read_number<std::int64_t>(restarts, 0).value_or(0);
}

std::string launch_name() {
  const char* const name = std::getenv("WEFT_LAUNCH");
  return name == nullptr ? std::string() : std::string(name);
}

bool launch_is_elastic() { return std::getenv("WEFT_ELASTIC") != nullptr; }

Result<std::string> from_first_rank(std::string mine) {
  static std::atomic<std::uint64_t> asked{0};  // unique topic numbers
  WEFT_TRY(job, launched_job());
  if (job == nullptr) return mine;
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  // Only rank 0 sends. A long text is split into parcels, of which all but the last are full.
  std::string heard;
  for (std::size_t at = 0;; at += Job::kMostBytes) {
    transport::Parcel parcel;
    if (job->rank() == 0 && at < mine.size()) parcel.bytes = mine.substr(at, Job::kMostBytes);
    WEFT_TRY(all, job->exchange(everyone, {0, asked.fetch_add(1)}, std::move(parcel)));
    heard += all.front().bytes;
    if (all.front().bytes.size() < Job::kMostBytes) return heard;
  }
}

}  // namespace weft::run
