// weft/torch/coalesced.h -- the operation that startCoalescing() and endCoalescing() enclose: done
// when all of its operations are.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "backend.h"

namespace weft_torch {

#if WEFT_TORCH_COALESCES
class CoalescedWork : public c10d::Work {
 public:
  using Parts = std::vector<c10::intrusive_ptr<c10d::Work>>;

  CoalescedWork(int rank, Parts parts)
      : Work(rank, c10d::OpType::UNKNOWN),
        parts_(std::move(parts)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    auto left = std::make_shared<std::atomic<size_t>>(parts_.size());
    if (parts_.empty()) future_->markCompleted(c10::IValue(std::vector<at::Tensor>()));
    for (const auto& part : parts_) {
      part->getFuture()->addCallback([left, future = future_](c10::ivalue::Future& done) {
        if (done.hasError()) {
          future->setErrorIfNeeded(done.exception_ptr());
        }
        if (--*left == 0 && !future->completed())
          future->markCompleted(c10::IValue(std::vector<at::Tensor>()));
      });
    }
  }

  bool isCompleted() override {
    for (const auto& part : parts_)
      if (!part->isCompleted()) return false;
    return true;
  }
  bool isSuccess() const override {
    for (const auto& part : parts_)
      if (!part->isSuccess()) return false;
    return true;
  }
  std::exception_ptr exception() const override {
    for (const auto& part : parts_)
      if (const auto failure = part->exception()) return failure;
    return nullptr;
  }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    for (const auto& part : parts_) part->wait(timeout);
    return true;
  }
  std::vector<at::Tensor> result() override {
    std::vector<at::Tensor> all;
    for (const auto& part : parts_)
      for (const at::Tensor& each : part->result()) all.push_back(each);
    return all;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  void synchronize() override {}

 private:
  const Parts parts_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

inline c10::intrusive_ptr<c10d::Work> make_coalesced(int rank, CoalescedWork::Parts parts) {
  return c10::make_intrusive<CoalescedWork>(rank, std::move(parts));
}
#endif

}  // namespace weft_torch
