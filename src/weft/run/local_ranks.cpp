#include "weft/run/local_ranks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/run/own_ranks.h"
#include "weft/transport/rendezvous.h"

namespace weft::run {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Job;

// What a rank says when it fails, where all of them can write it: memory that forks share.
class Complaints {
 public:
  explicit Complaints(std::int32_t ranks)
      : bytes_(sizeof(Board) + sizeof(Slot) * static_cast<std::size_t>(ranks)) {
    void* const found = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return;
    board_ = new (found) Board;
    slots_ = reinterpret_cast<Slot*>(board_ + 1);
    for (std::int32_t rank = 0; rank < ranks; ++rank) new (slots_ + rank) Slot;
    ranks_ = ranks;
  }
  ~Complaints() {
    if (board_ != nullptr) munmap(board_, bytes_);
  }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  bool ok() const { return board_ != nullptr; }

  void write(std::int32_t rank, const Error& error) {
    Slot& slot = slots_[rank];
    slot.fault = error.fault;
    copy(error.message, slot.message);
    copy(error.hint, slot.hint);
    slot.place.store(board_->next.fetch_add(1) + 1, std::memory_order_release);
  }

  // The first, by time.
  std::optional<RankFailure> first() const {
    std::optional<RankFailure> found;
    std::int32_t earliest = 0;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      const Slot& slot = slots_[rank];
      const std::int32_t place = slot.place.load(std::memory_order_acquire);
      if (place == 0 || (found && place > earliest)) continue;
      earliest = place;
      found = RankFailure{.rank = rank,
                          .error = {slot.fault, slot.message.data(), slot.hint.data(), {}, nullptr}};
    }
    return found;
  }

  bool has(std::int32_t rank) const { return slots_[rank].place.load(std::memory_order_acquire) != 0; }

 private:
  struct Board {
    std::atomic<std::int32_t> next{0};
  };
  struct Slot {
    std::atomic<std::int32_t> place{0};  // in the order of failures, from 1; 0: none
    Fault fault = Fault::world;
    std::array<char, 2048> message = {};
    std::array<char, 512> hint = {};
  };
  static_assert(std::atomic<std::int32_t>::is_always_lock_free, "shared between processes");
  static_assert(sizeof(Board) % alignof(Slot) == 0);

  template <std::size_t N>
  static void copy(const std::string& from, std::array<char, N>& to) {
    const std::size_t bytes = std::min(from.size(), N - 1);
    std::memcpy(to.data(), from.data(), bytes);
    to[bytes] = '\0';
  }

  std::size_t bytes_;
  std::int32_t ranks_ = 0;
  Board* board_ = nullptr;
  Slot* slots_ = nullptr;
};

// Never throws: a rank that throws fails.
Status do_part(const RankPart& part, const std::shared_ptr<Job>& job) {
  try {
    return part(job);
  } catch (const std::bad_alloc&) {
    return world_error("out of memory", "a smaller batch or model needs less");
  } catch (const std::exception& error) {
    return world_error(fmt::format("internal error: {}", error.what()));
  }
}

std::optional<RankFailure> on_threads(const LocalRanksOptions& options, const RankPart& part,
                                      Complaints& complaints) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto& job : transport::make_thread_jobs(options.ranks, options.timeout))
    jobs.push_back(std::move(job));
  const auto play = [&](std::int32_t rank) {
    std::shared_ptr<Job>& job = jobs[static_cast<std::size_t>(rank)];
    const Status status = do_part(part, job);
    if (!status.ok()) complaints.write(rank, status.error());
    job->leave();
  };
  {
    std::vector<std::jthread> threads;
    for (std::int32_t rank = 1; rank < options.ranks; ++rank) threads.emplace_back(play, rank);
    play(0);
  }
  return complaints.first();
}

// The ranks that were forked, watched to their end.
class Children {
 public:
  ~Children() { end(Clock::now()); }

  // In the child, does not return.
  Status start(std::int32_t rank, const std::function<bool()>& part) {
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process < 0)
      return world_error(fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)),
                         "LOCAL with fewer ranks needs fewer processes");
    if (process > 0) {
      children_.push_back({rank, process});
      return {};
    }
    // Ends with the session, also when that ended before this line; what the keyboard says is for rank 0,
    // which tells the others.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(2);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    _exit(part() ? 0 : 2);
  }

  // Waits for all of them until `deadline`, then kills who is left. Whoever ended by a signal or with a code
  // of its own before that, the first found.
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
                             world_error(fmt::format("it was killed by signal {}", WTERMSIG(status)))};
        else if (WEXITSTATUS(status) != 0 && complaints != nullptr && !complaints->has(child.rank))
          lost = RankFailure{child.rank, true,
                             world_error(fmt::format("it ended with code {}", WEXITSTATUS(status)))};
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

std::optional<RankFailure> on_processes(const LocalRanksOptions& options, const RankPart& part,
                                        Complaints& complaints) {
  static std::atomic<int> runs{0};  // a name for each, so that no two meet
  transport::Rendezvous meeting;
  meeting.ranks = options.ranks;
  meeting.name = fmt::format("local-{}-{}", getpid(), runs.fetch_add(1));
  meeting.secret = transport::new_secret();
  meeting.timeout = options.timeout;
  const auto play = [&](std::int32_t rank) {
    transport::Rendezvous mine = meeting;
    mine.rank = rank;
    auto joined = transport::join(mine);
    const std::shared_ptr<Job> job = joined.ok() ? std::move(*joined) : nullptr;
    const Status status = joined.ok() ? do_part(part, job) : Status(joined.error());
    // Before the rank leaves: the others complain of that.
    if (!status.ok()) complaints.write(rank, status.error());
    return status.ok();
  };
  Children children;
  for (std::int32_t rank = 1; rank < options.ranks; ++rank) {
    Status started = children.start(rank, [&] { return play(rank); });
    if (!started.ok()) return RankFailure{.rank = 0, .error = std::move(started).error()};
  }
  play(0);
  const auto lost = children.end(Clock::now() + options.grace, &complaints);
  return lost ? lost : complaints.first();
}

}  // namespace

std::optional<RankFailure> on_local_ranks(const LocalRanksOptions& options, const RankPart& part) {
  const auto fail = [](Error error) { return RankFailure{.rank = 0, .error = std::move(error)}; };
  if (options.ranks < 1 || options.ranks > kMostLocalRanks)
    return fail(user_error(fmt::format("LOCAL runs 1 to {} ranks: {}", kMostLocalRanks, options.ranks)));
  auto launched = launched_job();
  if (!launched.ok()) return fail(std::move(launched).error());
  if (*launched != nullptr) {
    const std::shared_ptr<Job>& job = *launched;
    if (job->ranks() != options.ranks)
      return fail(
          user_error(fmt::format("the launcher started {} ranks, LOCAL says {}", job->ranks(), options.ranks),
                     fmt::format("ON LOCAL {}", job->ranks())));
    Status status = do_part(part, job);
    if (status.ok()) return std::nullopt;
    return RankFailure{.rank = job->rank(), .error = std::move(status).error()};
  }
  Complaints complaints(options.ranks);
  if (!complaints.ok()) return fail(world_error("no memory for ranks to share"));
  return options.transport == comm::TransportKind::inproc ? on_threads(options, part, complaints)
                                                          : on_processes(options, part, complaints);
}

Result<std::shared_ptr<Job>> launched_job() {
  static std::shared_ptr<Job> joined;  // a process is one rank of one job for as long as it lives
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

Result<std::string> from_first_rank(std::string mine) {
  static std::atomic<std::uint64_t> asked{0};  // a topic for each
  WEFT_TRY(job, launched_job());
  if (job == nullptr) return mine;
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  WEFT_TRY(all, job->exchange(everyone, {0, asked.fetch_add(1)}, {.bytes = std::move(mine)}));
  return std::move(all.front().bytes);
}

}  // namespace weft::run
