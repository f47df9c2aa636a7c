#include "weft/exec/crew.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

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

}  // namespace

struct Crew::State {
  State(int count, std::span<const program::Task> program) : workers(count), tasks(program) {
    after.resize(tasks.size());
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      first_waiting.push_back(static_cast<std::uint32_t>(tasks[t].waits.size()));
      for (const std::uint32_t wait : tasks[t].waits) after[wait].push_back(t);
    }
    waiting.resize(tasks.size());
    ready.reserve(tasks.size());
  }

  // -- with the lock held --
  void push(std::uint32_t task) {
    ready.push_back(task);
    std::ranges::push_heap(ready, std::greater<>());
    ready_count.store(ready.size(), std::memory_order_release);
  }

  bool pop(std::uint32_t& task) {
    if (ready.empty()) return false;
    std::ranges::pop_heap(ready, std::greater<>());
    task = ready.back();
    ready.pop_back();
    ready_count.store(ready.size(), std::memory_order_release);
    return true;
  }

  bool has_news(int worker) const { return !ready.empty() || stopping || (worker == 0 && left == 0); }
  // -- --

  // Takes and does tasks; worker 0 until all are done, the others until the crew is dismissed.
  void labour(int worker) {
    std::unique_lock guard(lock);
    for (;;) {
      std::uint32_t task = 0;
      if (pop(task)) {
        guard.unlock();
        (*work)(task, worker);
        guard.lock();
        std::size_t woken = 0;
        for (const std::uint32_t next : after[task])
          if (--waiting[next] == 0) push(next), ++woken;
        // One of the woken this worker does itself.
        const bool tell = --left == 0 || woken > 1;
        if (left == 0) finished.store(true, std::memory_order_release);
        if (tell && asleep > 0) {
          guard.unlock();
          wake();
          guard.lock();
        }
        continue;
      }
      if (stopping || (worker == 0 && left == 0)) return;
      rest(guard, worker);
    }
  }

  // Looks for work for a while, then sleeps until there is news.
  void rest(std::unique_lock<SpinLock>& guard, int worker) {
    guard.unlock();
    constexpr int kPatience = 20'000;  // some 50 us
    for (int i = 0; i < kPatience; ++i) {
      if (ready_count.load(std::memory_order_acquire) > 0 ||
          (worker == 0 && finished.load(std::memory_order_acquire))) {
        guard.lock();
        return;
      }
      relax();
    }
    guard.lock();
    ++asleep;
    while (!has_news(worker)) {
      // News that comes after this look changes the count, and then the wait is none.
      const std::uint32_t seen = news.load(std::memory_order_acquire);
      guard.unlock();
      news.wait(seen, std::memory_order_acquire);
      guard.lock();
    }
    --asleep;
  }

  void wake() {
    news.fetch_add(1, std::memory_order_release);
    news.notify_all();
  }

  const int workers;
  const std::span<const program::Task> tasks;
  std::vector<std::vector<std::uint32_t>> after;  // who waits for each
  std::vector<std::uint32_t> first_waiting, waiting;
  std::vector<std::uint32_t> ready;  // a heap, the first in the program on top
  std::size_t left = 0;
  int asleep = 0;
  bool stopping = false;
  const std::function<void(std::uint32_t, int)>* work = nullptr;
  std::vector<std::thread> threads;
  // Apart from what the lock's holder writes, and from each other: they are looked at all the time.
  alignas(64) SpinLock lock;
  alignas(64) std::atomic<std::size_t> ready_count{0};
  std::atomic<bool> finished{false};
  alignas(64) std::atomic<std::uint32_t> news{0};
};

Crew::Crew(int workers, std::span<const program::Task> tasks)
    : state_(std::make_unique<State>(std::max(workers, 1), tasks)) {
  for (int worker = 1; worker < state_->workers; ++worker)
    state_->threads.emplace_back([state = state_.get(), worker] { state->labour(worker); });
}

Crew::~Crew() {
  {
    const std::lock_guard guard(state_->lock);
    state_->stopping = true;
  }
  state_->wake();
  for (std::thread& thread : state_->threads) thread.join();
}

int Crew::workers() const { return state_->workers; }

void Crew::run(const std::function<void(std::uint32_t, int)>& work) {
  State& state = *state_;
  if (state.workers == 1) {
    for (std::uint32_t t = 0; t < state.tasks.size(); ++t) work(t, 0);
    return;
  }
  if (state.tasks.empty()) return;
  bool sleepers = false;
  {
    const std::lock_guard guard(state.lock);
    state.work = &work;
    state.left = state.tasks.size();
    state.finished.store(false, std::memory_order_release);
    state.waiting = state.first_waiting;
    for (std::uint32_t t = 0; t < state.tasks.size(); ++t)
      if (state.waiting[t] == 0) state.push(t);
    sleepers = state.asleep > 0;
  }
  if (sleepers) state.wake();
  state.labour(0);
}

}  // namespace weft::exec
