// weft/torch/work.h -- an operation, and the queue that runs operations in order.
//
//   collectives of a group   one queue        all_reduce · all_gather · barrier ...
//   messages of a group      one queue per direction, peer and tag
//
// Each queue has a thread while it has operations. A thread that waits for an operation runs the
// queue itself if no other thread does, which saves a thread switch. Completion callbacks run without
// the queue, so a callback may start further operations and wait for them.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "text.h"

namespace weft_torch {

class Queue;

class WeftWork : public c10d::Work {
 public:
  using Tensors = std::vector<at::Tensor>;

  WeftWork(int rank, c10d::OpType type, const char* title, const Tensors& inputs, Tensors outputs)
      : Work(rank, type, title, inputs),
        outputs_(std::move(outputs)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

  // The body may set the source rank.
  std::function<void(WeftWork&)> body;
  int source = -1;

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  bool isCompleted() override;
  int sourceRank() const override { return source; }
  Tensors result() override {
    require(isCompleted(), "weft: result() needs a completed operation; call wait() first");
    return outputs_;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  void synchronize() override {}

 private:
  friend class Queue;

  bool is_done() { return Work::isCompleted(); }

  void run() {
    try {
      // Outputs may be leaves that require a gradient.
      const at::AutoDispatchBelowADInplaceOrView no_autograd;
      body(*this);
    } catch (...) {
      failure_ = std::current_exception();
    }
    body = nullptr;  // drops its tensors before any waiting thread continues
  }

  void complete() {
    const c10::intrusive_ptr<c10::ivalue::Future> future = future_;
    const std::exception_ptr failure = failure_;
    if (failure) {
      future->setError(failure);
    } else {
      future->markCompleted(c10::IValue(outputs_));
    }
    finish(failure);
  }

  Tensors outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::exception_ptr failure_;
  std::weak_ptr<Queue> queue_;
};

using WorkPointer = c10::intrusive_ptr<WeftWork>;

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  // `at_once`: the caller will wait now, so the thread is not woken. wake() makes up for it if the
  // caller does something else.
  void add(const WorkPointer& work, bool at_once = false) {
    work->queue_ = weak_from_this();
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(work);
    if (!at_once) wake_thread();
  }

  // Runs the queue on this thread, or waits for the thread that does, until the operation is done.
  // False at the deadline.
  bool run_until(WeftWork& work, std::chrono::steady_clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (work.is_done()) return true;
      if (!busy_ && !waiting_.empty()) {
        step(lock);
        continue;
      }
      if (deadline == std::chrono::steady_clock::time_point::max()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
        return work.is_done();
      }
    }
  }

  // Waits until all operations are done; false at the deadline.
  bool drain(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!waiting_.empty()) wake_thread();
    const auto is_empty = [this] { return waiting_.empty() && completing_ == 0 && !busy_; };
    if (deadline != std::chrono::steady_clock::time_point::max())
      return changed_.wait_until(lock, deadline, is_empty);
    changed_.wait(lock, is_empty);
    return true;
  }

  void wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!waiting_.empty()) wake_thread();
  }

  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.empty() && completing_ == 0 && !busy_;
  }

 private:
  // An idle thread ends after this time.
  static constexpr std::chrono::seconds kLinger{2};

  void wake_thread() {
    if (has_thread_) {
      changed_.notify_all();
      return;
    }
    has_thread_ = true;
    // Detached: it ends by itself, and keeps the queue alive.
    std::thread([self = shared_from_this()] { self->serve(); }).detach();
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      const bool has_work = changed_.wait_for(lock, kLinger, [this] { return !busy_ && !waiting_.empty(); });
      if (has_work) {
        step(lock);
      } else if (waiting_.empty()) {
        has_thread_ = false;
        return;
      }
    }
  }

  void step(std::unique_lock<std::mutex>& lock) {
    WorkPointer work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    ++completing_;
    lock.unlock();
    work->run();
    lock.lock();
    busy_ = false;
    if (!waiting_.empty()) changed_.notify_all();
    lock.unlock();
    work->complete();
    work.reset();  // its outputs may belong to Python: not under the lock
    lock.lock();
    --completing_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkPointer> waiting_;
  bool busy_ = false, has_thread_ = false;
  int completing_ = 0;
};

inline bool WeftWork::isCompleted() {
  if (is_done()) return true;
  if (const auto queue = queue_.lock()) queue->wake();
  return false;
}

inline c10::intrusive_ptr<c10::ivalue::Future> WeftWork::getFuture() {
  if (const auto queue = queue_.lock()) queue->wake();
  return future_;
}

inline bool WeftWork::wait(std::chrono::milliseconds timeout) {
  if (const auto queue = queue_.lock()) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max();
    require(queue->run_until(*this, deadline), "weft: the operation is not done after ", timeout.count(),
            " ms on rank ", rank_, "; it continues");
  }
  return Work::wait(timeout);
}

}  // namespace weft_torch
