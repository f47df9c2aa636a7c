#include "weft/exec/crew.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::exec {
namespace {

// Tells the processor that this loop waits for another one.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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

  // -- under `mutex` --
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

  // Takes and does tasks until none is left to start or `stop`.
  void labour(int worker) {
    std::unique_lock lock(mutex);
    for (;;) {
      std::uint32_t task = 0;
      if (pop(task)) {
        lock.unlock();
        (*work)(task, worker);
        lock.lock();
        std::size_t woken = 0;
        for (const std::uint32_t next : after[task])
          if (--waiting[next] == 0) push(next), ++woken;
        if (--left == 0) {
          finished.store(true, std::memory_order_release);
          wake.notify_all();
        } else if (woken > 1 && asleep > 0) {
          wake.notify_all();
        }
        continue;
      }
      if (worker == 0 && left == 0) return;
      if (stopping) return;
      rest(lock, worker);
    }
  }

  // Looks for work for a while, then sleeps until there is some.
  void rest(std::unique_lock<std::mutex>& lock, int worker) {
    lock.unlock();
    constexpr int kPatience = 20'000;  // some 50 us
    for (int i = 0; i < kPatience; ++i) {
      if (ready_count.load(std::memory_order_acquire) > 0 ||
          (worker == 0 && finished.load(std::memory_order_acquire))) {
        lock.lock();
        return;
      }
      pause();
    }
    lock.lock();
    ++asleep;
    wake.wait(lock, [&] { return !ready.empty() || stopping || (worker == 0 && left == 0); });
    --asleep;
  }

  const int workers;
  const std::span<const program::Task> tasks;
  std::vector<std::vector<std::uint32_t>> after;  // who waits for each
  std::vector<std::uint32_t> first_waiting, waiting;
  std::vector<std::uint32_t> ready;  // a heap, the first in the program on top
  std::atomic<std::size_t> ready_count{0};
  std::atomic<bool> finished{false};
  std::size_t left = 0;
  int asleep = 0;
  bool stopping = false;
  const std::function<void(std::uint32_t, int)>* work = nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
};

Crew::Crew(int workers, std::span<const program::Task> tasks)
    : state_(std::make_unique<State>(std::max(workers, 1), tasks)) {
  for (int worker = 1; worker < state_->workers; ++worker)
    state_->threads.emplace_back([state = state_.get(), worker] { state->labour(worker); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
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
  {
    const std::lock_guard lock(state.mutex);
    state.work = &work;
    state.left = state.tasks.size();
    state.finished.store(false, std::memory_order_release);
    state.waiting = state.first_waiting;
    for (std::uint32_t t = 0; t < state.tasks.size(); ++t)
      if (state.waiting[t] == 0) state.push(t);
    if (state.asleep > 0) state.wake.notify_all();
  }
  state.labour(0);
}

}  // namespace weft::exec
