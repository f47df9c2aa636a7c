#include "weft/exec/crew.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "weft/program/without_overlap.h"

namespace weft::exec {
namespace {

// Tells the processor that this loop waits for another one.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What it guards takes a fraction of a microsecond: a mutex would put its loser to sleep for longer.
class SpinLock {
 public:
  void lock() {
    for (int tries = 0; held_.test_and_set(std::memory_order_acquire); ++tries) {
      constexpr int kPatience = 1000;  // then the holder was probably put aside
      while (held_.test(std::memory_order_relaxed) && tries < kPatience) relax(), ++tries;
      if (tries >= kPatience) std::this_thread::yield();
    }
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

// Where one thread sleeps until another has news. News that comes after the look at `seen` ends the wait.
class Bell {
 public:
  std::uint32_t seen() const { return rung_.load(std::memory_order_acquire); }
  void wait(std::uint32_t seen) const { rung_.wait(seen, std::memory_order_acquire); }
  void ring() {
    rung_.fetch_add(1, std::memory_order_release);
    rung_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> rung_{0};
};

}  // namespace

struct Crew::State {
  State(const CrewOptions& how, std::span<const program::Task> program, std::vector<std::uint32_t> of_mover)
      : options(how), task_count(program.size()), after(program.size()) {
    const bool mix = options.overlap || of_mover.empty();
    const auto apart =
        mix ? std::vector<std::vector<std::uint32_t>>() : program::waits_without_overlap(program, of_mover);
    for (std::uint32_t t = 0; t < task_count; ++t) {
      const std::vector<std::uint32_t>& waits = mix ? program[t].waits : apart[t];
      first_waiting.push_back(static_cast<std::uint32_t>(waits.size()));
      for (const std::uint32_t wait : waits) after[wait].push_back(t);
    }
    if (options.overlap) moves = std::move(of_mover);
    is_move.resize(task_count);
    for (const std::uint32_t move : moves) is_move[move] = true;
    waiting.resize(task_count);
    ready.reserve(task_count);
  }

  // -- with the lock held --
  // True when a worker can take it; the mover looks for its own.
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
  bool can_move() const {
    return work != nullptr && !failed && next_move < moves.size() && waiting[moves[next_move]] == 0;
  }
  bool note_moves() {
    const bool can = can_move();
    move_ready.store(can, std::memory_order_release);
    return can;
  }
  bool has_news(int worker) const {
    return (!ready.empty() && !failed) || stopping || (worker == 0 && is_over());
  }
  // -- --

  // Does a task that was taken, and wakes whom that concerns. `spare`: how many of the tasks that it sets
  // free this thread will do itself.
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
    const bool tell_mover = note_moves() && mover_asleep;
    if (!tell && !tell_mover) return;
    guard.unlock();
    if (tell) for_workers.ring();
    if (tell_mover) for_mover.ring();
    guard.lock();
  }

  // Takes and does tasks; worker 0 until all are done, the others until the crew is dismissed.
  void labour(int worker) {
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

  // Looks for something for a while: most waits are over before a sleep would be.
  template <class Look>
  bool comes_soon(Look look) const {
    constexpr int kPatience = 20'000;  // some 50 us
    for (int i = options.crowded ? kPatience : 0; i < kPatience; ++i) {
      if (look()) return true;
      relax();
    }
    return false;
  }

  // Looks for work for a while, then sleeps until there is news.
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

  void move() {
    std::unique_lock guard(lock);
    while (!stopping) {
      if (can_move()) {
        ++running;
        do_task(guard, moves[next_move++], options.workers, 0);
        continue;
      }
      // Between steps there is nothing to look for.
      if (work != nullptr && next_move < moves.size() && !failed) {
        guard.unlock();
        const bool soon = comes_soon([&] { return move_ready.load(std::memory_order_acquire); });
        guard.lock();
        if (soon) continue;
      }
      if (can_move() || stopping) continue;
      mover_asleep = true;
      const std::uint32_t seen = for_mover.seen();
      guard.unlock();
      for_mover.wait(seen);
      guard.lock();
      mover_asleep = false;
    }
  }

  const CrewOptions options;
  const std::size_t task_count;
  std::vector<std::vector<std::uint32_t>> after;  // who waits for each
  std::vector<std::uint32_t> first_waiting, waiting;
  std::vector<std::uint32_t> moves;  // of the mover; none without one
  std::vector<bool> is_move;
  std::vector<std::uint32_t> ready;  // a heap, the first in the program on top
  std::size_t next_move = 0;
  std::size_t left = 0, running = 0;
  int asleep = 0;
  bool mover_asleep = false, failed = false, stopping = false;
  const Work* work = nullptr;
  std::vector<std::thread> threads;
  // Apart from what the lock's holder writes, and from each other: they are looked at all the time.
  alignas(64) SpinLock lock;
  alignas(64) std::atomic<std::size_t> ready_count{0};
  std::atomic<bool> finished{false}, move_ready{false};
  alignas(64) Bell for_workers;
  Bell for_mover;
};

Crew::Crew(const CrewOptions& options, std::span<const program::Task> tasks,
           std::vector<std::uint32_t> moves) {
  CrewOptions how = options;
  how.workers = std::max(how.workers, 1);
  state_ = std::make_unique<State>(how, tasks, std::move(moves));
  try {
    for (int worker = 1; worker < how.workers; ++worker)
      state_->threads.emplace_back([state = state_.get(), worker] { state->labour(worker); });
    if (has_mover()) state_->threads.emplace_back([state = state_.get()] { state->move(); });
  } catch (...) {
    dismiss();
    throw;
  }
}

Crew::~Crew() { dismiss(); }

void Crew::dismiss() {
  {
    const std::lock_guard guard(state_->lock);
    state_->stopping = true;
  }
  state_->for_workers.ring();
  state_->for_mover.ring();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
}

int Crew::workers() const { return state_->options.workers; }
bool Crew::has_mover() const { return !state_->moves.empty(); }

bool Crew::run(const Work& work) {
  State& state = *state_;
  if (state.options.workers == 1 && !has_mover()) {
    for (std::uint32_t t = 0; t < state.task_count; ++t)
      if (!work(t, 0)) return false;
    return true;
  }
  if (state.task_count == 0) return true;
  bool sleepers = false, wake_mover = false;
  {
    const std::lock_guard guard(state.lock);
    state.work = &work;
    state.left = state.task_count;
    state.failed = false;
    state.next_move = 0;
    state.finished.store(false, std::memory_order_release);
    state.waiting = state.first_waiting;
    state.ready.clear();
    for (std::uint32_t t = 0; t < state.task_count; ++t)
      if (state.waiting[t] == 0) state.make_ready(t);
    sleepers = state.asleep > 0;
    wake_mover = state.note_moves() && state.mover_asleep;
  }
  if (sleepers) state.for_workers.ring();
  if (wake_mover) state.for_mover.ring();
  state.labour(0);
  const std::lock_guard guard(state.lock);
  state.work = nullptr;
  state.ready.clear();
  state.ready_count.store(0, std::memory_order_release);
  return !state.failed;
}

}  // namespace weft::exec
