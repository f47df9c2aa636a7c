#include "weft/device/cpu/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weft/device/cpu/kernel.h"
#include "weft/device/cpu/pages.h"

namespace weft::device::cpu {

std::uint64_t EventState::new_ticket() {
  const std::lock_guard guard(lock_);
  return ++recorded_;
}

std::uint64_t EventState::last_ticket() const {
  const std::lock_guard guard(lock_);
  return recorded_;
}

void EventState::finish(std::uint64_t ticket, const Status& status) {
  {
    const std::lock_guard guard(lock_);
    if (ticket <= done_) return;
    done_ = ticket;
    when_ = std::chrono::steady_clock::now();
    status_ = status;
  }
  news_.notify_all();
}

bool EventState::is_done() const {
  const std::lock_guard guard(lock_);
  return done_ == recorded_;
}

Status EventState::wait_for(std::uint64_t ticket) const {
  std::unique_lock guard(lock_);
  news_.wait(guard, [&] { return done_ >= ticket; });
  return status_;
}

std::chrono::steady_clock::time_point EventState::when() const {
  const std::lock_guard guard(lock_);
  return when_;
}

double CpuEvent::seconds_since(const Event& earlier) const {
  const auto before = static_cast<const CpuEvent&>(earlier).state_->when();
  return std::chrono::duration<double>(state_->when() - before).count();
}

namespace {

const std::shared_ptr<EventState>& state_of(const Event& event) {
  return static_cast<const CpuEvent&>(event).state();
}

class CallerStream final : public Stream {
 public:
  explicit CallerStream(Pages scratch) : scratch_(std::move(scratch)) {}

  bool on_caller() const override { return true; }
  void launch(const device::Kernel& kernel, const program::Task& task) override {
    if (!status_.ok()) return;
    try {
      static_cast<const Kernel&>(kernel).run(task, scratch_.bytes().data());
    } catch (const std::bad_alloc&) {  // from a node that runs its definition
      status_ = environment_error("out of memory", "use a smaller batch or model");
    } catch (const std::exception& error) {
      status_ = environment_error(fmt::format("internal error: {}", error.what()));
    }
  }
  void copy_in(Address to, std::span<const std::byte> from) override {
    move(to.raw(), from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, Address from) override { move(to.data(), from.raw(), to.size()); }
  void copy(Address to, Address from, std::int64_t bytes) override {
    move(to.raw(), from.raw(), static_cast<std::size_t>(bytes));
  }
  void record(Event& event) override {
    EventState& state = *state_of(event);
    finish(state, state.new_ticket());
  }
  void wait(const Event& event) override {
    const EventState& state = *state_of(event);
    wait_for(state, state.last_ticket());
  }
  void tell(std::uint64_t& word, std::uint64_t number) override {
    if (status_.ok()) std::atomic_ref(word).store(number, std::memory_order_release);
  }
  Status synchronize() override { return status_; }

  // The deferred halves of record() and wait(), run in stream order. They also run on a failed
  // stream, so that those waiting for the event receive its error.
  void finish(EventState& state, std::uint64_t ticket) const { state.finish(ticket, status_); }
  void wait_for(const EventState& state, std::uint64_t ticket) {
    Status status = state.wait_for(ticket);
    if (status_.ok() && !status.ok()) status_ = std::move(status);
  }

 private:
  void move(void* to, const void* from, std::size_t bytes) const {
    if (bytes > 0 && status_.ok()) std::memcpy(to, from, bytes);
  }

  const Pages scratch_;
  Status status_;  // its own error, or that of a stream it waited for
};

// A work queue and the thread that runs it.
class ThreadStream final : public Stream {
 public:
  explicit ThreadStream(Pages scratch) : work_(std::move(scratch)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~ThreadStream() override {
    {
      const std::lock_guard guard(lock_);
      stopping_ = true;
    }
    news_.notify_all();
    thread_.join();
  }

  bool on_caller() const override { return false; }
  void launch(const device::Kernel& kernel, const program::Task& task) override {
    give([this, &kernel, &task] { work_.launch(kernel, task); });
  }
  void copy_in(Address to, std::span<const std::byte> from) override {
    give([this, to, from] { work_.copy_in(to, from); });
  }
  void copy_out(std::span<std::byte> to, Address from) override {
    give([this, to, from] { work_.copy_out(to, from); });
  }
  void copy(Address to, Address from, std::int64_t bytes) override {
    give([this, to, from, bytes] { work_.copy(to, from, bytes); });
  }
  void record(Event& event) override {
    give([this, state = state_of(event), ticket = state_of(event)->new_ticket()] {
      work_.finish(*state, ticket);
    });
  }
  void wait(const Event& event) override {
    give([this, state = state_of(event), ticket = state_of(event)->last_ticket()] {
      work_.wait_for(*state, ticket);
    });
  }
  void tell(std::uint64_t& word, std::uint64_t number) override {
    give([this, &word, number] { work_.tell(word, number); });
  }
  Status synchronize() override {
    std::unique_lock guard(lock_);
    idle_.wait(guard, [&] { return queue_.empty() && !busy_; });
    return work_.synchronize();
  }

 private:
  using Work = std::function<void()>;

  void give(Work work) {
    {
      const std::lock_guard guard(lock_);
      queue_.push_back(std::move(work));
    }
    news_.notify_one();
  }

  void serve() {
    std::unique_lock guard(lock_);
    for (;;) {
      news_.wait(guard, [&] { return !queue_.empty() || stopping_; });
      if (queue_.empty()) return;
      const Work work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      guard.unlock();
      work();
      guard.lock();
      busy_ = false;
      if (queue_.empty()) idle_.notify_all();
    }
  }

  CallerStream work_;  // executes the calls; owned by the thread while it is busy
  std::mutex lock_;
  std::condition_variable news_, idle_;
  std::deque<Work> queue_;
  bool busy_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Stream>> make_caller_stream(std::int64_t scratch_bytes) {
  WEFT_TRY(scratch, Pages::take(scratch_bytes));
  return std::unique_ptr<Stream>(std::make_unique<CallerStream>(std::move(scratch)));
}

Result<std::unique_ptr<Stream>> make_thread_stream(std::int64_t scratch_bytes) {
  WEFT_TRY(scratch, Pages::take(scratch_bytes));
  try {
    return std::unique_ptr<Stream>(std::make_unique<ThreadStream>(std::move(scratch)));
  } catch (const std::system_error& error) {
    return environment_error(fmt::format("cannot start a thread for a stream: {}", error.what()));
  }
}

}  // namespace weft::device::cpu
