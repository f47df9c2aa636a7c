#include "weft/runtime/exec/worker_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/check.h"
#include "weft/program/tasks/without_overlap.h"

namespace weft::exec {
namespace {

// Hints to the processor that this is a spin-wait loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Guards critical sections shorter than a microsecond, for which sleeping on a mutex takes too
// long.
class SpinLock {
 public:
  void lock() {
    for (int tries = 0; held_.test_and_set(std::memory_order_acquire); ++tries) {
      constexpr int kPatience = 1000;  // after this, the holder was probably preempted
      while (held_.test(std::memory_order_relaxed) && tries < kPatience) relax(), ++tries;
      if (tries >= kPatience) std::this_thread::yield();
    }
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

// Lets a thread sleep until another rings. A ring after the call of seen() ends the wait.
class Bell {
 public:
  std::uint32_t seen() const { return rung_.load(std::memory_order_acquire); }
  void wait(std::uint32_t seen) {
    while (rung_.load(std::memory_order_acquire) == seen) futex(FUTEX_WAIT_PRIVATE, seen);
  }
  void ring() {
    rung_.fetch_add(1, std::memory_order_release);
    futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }

 private:
  // Avoids std::atomic::wait, which yields several times before it sleeps. If a busy process shares
  // the core, each yield costs a full time slice of that process.
  void futex(int operation, std::uint32_t value) {
    syscall(SYS_futex, &rung_, operation, value, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> rung_{0};
};

}  // namespace

struct WorkerPool::State {
  // The thread of one exchange stream. Cache-line aligned, because `ready` is polled.
  struct alignas(64) Mover {
    std::vector<std::uint32_t> moves;
    std::size_t next = 0;
    bool asleep = false;
    alignas(64) std::atomic<bool> ready = false;
    Bell bell;
  };

  State(const WorkerPoolOptions& how, std::span<const program::Task> program,
        std::vector<std::vector<std::uint32_t>> streams)
      : options(how), task_count(program.size()), after(program.size()) {
    std::vector<std::uint32_t> moves;  // of all streams
    for (const std::vector<std::uint32_t>& stream : streams)
      moves.insert(moves.end(), stream.begin(), stream.end());
    std::ranges::sort(moves);
    const bool mix = options.overlap || moves.empty();
    const auto apart =
        mix ? std::vector<std::vector<std::uint32_t>>() : program::waits_without_overlap(program, moves);
    for (std::uint32_t t = 0; t < task_count; ++t) {
      const std::vector<std::uint32_t>& waits = mix ? program[t].waits : apart[t];
      first_waiting.push_back(static_cast<std::uint32_t>(waits.size()));
      for (const std::uint32_t wait : waits) after[wait].push_back(t);
    }
    is_move.resize(task_count);
    if (options.overlap) {
      for (const std::uint32_t move : moves) is_move[move] = true;
      for (std::vector<std::uint32_t>& stream : streams)
        if (!stream.empty()) movers.emplace_back().moves = std::move(stream);
      WEFT_CHECK(movers.size() <= 64, "more streams than a mesh has axes");
    }
    waiting.resize(task_count);
    ready.reserve(task_count);
  }

  // -- REQUIRES: the lock is held --
  // Returns true if the task is for workers; movers find their own tasks.
  bool make_ready(std::uint32_t task) {
    if (is_move[task]) return false;
    ready.push_back(task);
    std::ranges::push_heap(ready, std::greater<>());
    ready_count.store(ready.size(), std::memory_order_release);
    return true;
  }

  bool pop(std::uint32_t& task) {
    if (ready.empty() || failed) return false;
    std::ranges::pop_heap(ready, std::greater<>());
    task = ready.back();
    ready.pop_back();
    ready_count.store(ready.size(), std::memory_order_release);
    ++running;
    return true;
  }

  bool is_over() const { return left == 0 || (failed && running == 0); }
  bool can_move(const Mover& mover) const {
    return work != nullptr && !failed && mover.next < mover.moves.size() &&
           waiting[mover.moves[mover.next]] == 0;
  }
  // Updates the movers' `ready` flags. Returns a bit per sleeping mover to wake after releasing the
  // lock.
  std::uint64_t note_moves() {
    std::uint64_t sleepers = 0, bit = 1;
    for (Mover& mover : movers) {
      const bool can = can_move(mover);
      mover.ready.store(can, std::memory_order_release);
      if (can && mover.asleep) sleepers |= bit;
      bit <<= 1;
    }
    return sleepers;
  }
  bool has_news(int worker) const {
    return (!ready.empty() && !failed) || stopping || (worker == 0 && is_over());
  }
  // -- end of functions that require the lock --

  // Runs a task and wakes the threads it unblocks. `spare`: how many of the unblocked tasks this
  // thread will run itself.
  void do_task(std::unique_lock<SpinLock>& guard, std::uint32_t task, int worker, std::size_t spare) {
    const Work& doing = *work;
    guard.unlock();
    const bool good = doing(task, worker);
    guard.lock();
    --running;
    --left;
    if (!good) {
      failed = true;
      ready.clear();
      ready_count.store(0, std::memory_order_release);
    }
    std::size_t freed = 0;
    for (const std::uint32_t next : after[task])
      if (--waiting[next] == 0 && !failed) freed += make_ready(next) ? 1 : 0;
    const bool over = is_over();
    if (over) finished.store(true, std::memory_order_release);
    const bool tell = (over || freed > spare) && asleep > 0;
    const std::uint64_t sleepers = note_moves();
    if (!tell && sleepers == 0) return;
    guard.unlock();
    if (tell) for_workers.ring();
    wake(sleepers);
    guard.lock();
  }

  void wake(std::uint64_t sleepers) {
    for (Mover& mover : movers) {
      if ((sleepers & 1) != 0) mover.bell.ring();
      sleepers >>= 1;
    }
  }

  // The loop of a worker. Worker 0 returns when all tasks are done, the others at shutdown.
  void run_worker(int worker) {
    std::unique_lock guard(lock);
    for (;;) {
      std::uint32_t task = 0;
      if (pop(task)) {
        do_task(guard, task, worker, 1);
        continue;
      }
      if (stopping || (worker == 0 && is_over())) return;
      rest(guard, worker);
    }
  }

  // Spins for a while: most waits end before a sleep would pay off.
  template <class Look>
  bool comes_soon(Look look) const {
    constexpr int kPatience = 20'000;  // some 50 us
    for (int i = options.oversubscribed ? kPatience : 0; i < kPatience; ++i) {
      if (look()) return true;
      relax();
    }
    return false;
  }

  // Spins for work, then sleeps until woken.
  void rest(std::unique_lock<SpinLock>& guard, int worker) {
    guard.unlock();
    const bool soon = comes_soon([&] {
      return ready_count.load(std::memory_order_acquire) > 0 ||
             (worker == 0 && finished.load(std::memory_order_acquire));
    });
    guard.lock();
    if (soon) return;
    ++asleep;
    while (!has_news(worker)) {
      const std::uint32_t seen = for_workers.seen();
      guard.unlock();
      for_workers.wait(seen);
      guard.lock();
    }
    --asleep;
  }

  // The loop of mover `number`.
  void move(std::size_t number) {
    Mover& mover = movers[number];
    std::unique_lock guard(lock);
    while (!stopping) {
      if (can_move(mover)) {
        ++running;
        do_task(guard, mover.moves[mover.next++], options.workers + static_cast<int>(number), 0);
        continue;
      }
      // Between steps it sleeps without spinning.
      if (work != nullptr && mover.next < mover.moves.size() && !failed) {
        guard.unlock();
        const bool soon = comes_soon([&] { return mover.ready.load(std::memory_order_acquire); });
        guard.lock();
        if (soon) continue;
      }
      if (can_move(mover) || stopping) continue;
      mover.asleep = true;
      const std::uint32_t seen = mover.bell.seen();
      guard.unlock();
      mover.bell.wait(seen);
      guard.lock();
      mover.asleep = false;
    }
  }

  const WorkerPoolOptions options;
  const std::size_t task_count;
  std::vector<std::vector<std::uint32_t>> after;  // successors of each task
  std::vector<std::uint32_t> first_waiting, waiting;
  std::vector<bool> is_move;         // the task belongs to a mover
  std::vector<std::uint32_t> ready;  // a heap; the first in program order on top
  std::size_t left = 0, running = 0;
  int asleep = 0;
  bool failed = false, stopping = false;
  const Work* work = nullptr;
  std::vector<std::thread> threads;
  // On separate cache lines from each other and from data written under the lock, because they are
  // polled.
  alignas(64) SpinLock lock;
  alignas(64) std::atomic<std::size_t> ready_count{0};
  std::atomic<bool> finished{false};
  alignas(64) Bell for_workers;
  std::deque<Mover> movers;
};

WorkerPool::WorkerPool(const WorkerPoolOptions& options, std::span<const program::Task> tasks,
                       std::vector<std::vector<std::uint32_t>> streams) {
  WorkerPoolOptions how = options;
  how.workers = std::max(how.workers, 1);
  state_ = std::make_unique<State>(how, tasks, std::move(streams));
  try {
    for (int worker = 1; worker < how.workers; ++worker)
      state_->threads.emplace_back([state = state_.get(), worker] { state->run_worker(worker); });
    for (std::size_t mover = 0; mover < movers(); ++mover)
      state_->threads.emplace_back([state = state_.get(), mover] { state->move(mover); });
  } catch (...) {
    dismiss();
    throw;
  }
}

WorkerPool::~WorkerPool() { dismiss(); }

void WorkerPool::dismiss() {
  {
    const std::lock_guard guard(state_->lock);
    state_->stopping = true;
  }
  state_->for_workers.ring();
  for (State::Mover& mover : state_->movers) mover.bell.ring();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
}

int WorkerPool::workers() const { return state_->options.workers; }
std::size_t WorkerPool::movers() const { return state_->movers.size(); }

bool WorkerPool::run(const Work& work) {
  State& state = *state_;
  if (state.options.workers == 1 && movers() == 0) {
    for (std::uint32_t t = 0; t < state.task_count; ++t)
      if (!work(t, 0)) return false;
    return true;
  }
  if (state.task_count == 0) return true;
  bool sleepers = false;
  std::uint64_t sleeping_movers = 0;
  {
    const std::lock_guard guard(state.lock);
    state.work = &work;
    state.left = state.task_count;
    state.failed = false;
    for (State::Mover& mover : state.movers) mover.next = 0;
    state.finished.store(false, std::memory_order_release);
    state.waiting = state.first_waiting;
    state.ready.clear();
    for (std::uint32_t t = 0; t < state.task_count; ++t)
      if (state.waiting[t] == 0) state.make_ready(t);
    sleepers = state.asleep > 0;
    sleeping_movers = state.note_moves();
  }
  if (sleepers) state.for_workers.ring();
  state.wake(sleeping_movers);
  state.run_worker(0);
  const std::lock_guard guard(state.lock);
  state.work = nullptr;
  state.ready.clear();
  state.ready_count.store(0, std::memory_order_release);
  return !state.failed;
}

}  // namespace weft::exec
