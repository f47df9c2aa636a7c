// weft/torch/group.h -- the communicators of a process group, and its scratch memory.
#pragma once
#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "library.h"
#include "mailbox.h"

namespace weft_torch {

using Milliseconds = std::chrono::milliseconds;

class Group {
 public:
  // `messages`: a communicator of the same ranks.
  Group(weft_comm* comm, weft_comm* messages, int rank, int size)
      : comm_(comm), rank_(rank), size_(size), mailbox_(new Mailbox(messages, rank, size)) {}
  ~Group() { close(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Leaves the group: other ranks then know that this one did not fail. No call may be under way.
  void close() {
    mailbox_.reset();
    library().close(std::exchange(comm_, nullptr));
  }

  weft_comm* comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Mailbox& mailbox() {
    if (!mailbox_) throw std::runtime_error("weft: the process group is shut down");
    return *mailbox_;
  }

  // Throws the error of a call that failed.
  void check(int status, const char* call) const {
    if (status == WEFT_OK) return;
    std::string why = comm_ == nullptr ? "the process group is shut down" : library().last_error();
    why = why.substr(0, why.find(": call shrink()"));  // a function that torch does not offer
    throw std::runtime_error("weft " + std::string(call) +
                             (status == WEFT_LATE ? ": timeout on rank " : " failed on rank ") +
                             std::to_string(rank_) + " of " + std::to_string(size_) + ": " + why);
  }

  void run(const weft_call& call, const char* name) const { check(library().run(comm_, &call), name); }

  // Memory for one collective at a time. Reused, since fresh pages are slow.
  char* scratch(size_t bytes) {
    if (static_cast<size_t>(scratch_.numel()) < bytes || !scratch_.defined())
      scratch_ = at::empty({static_cast<int64_t>(std::max<size_t>(bytes, 4096))}, at::kByte);
    return static_cast<char*>(scratch_.data_ptr());
  }
  void trim_scratch() {
    constexpr int64_t kMostKept = 64 << 20;
    if (scratch_.defined() && scratch_.numel() > kMostKept) scratch_ = at::empty({0}, at::kByte);
  }

 private:
  weft_comm* comm_;
  int rank_, size_;
  std::unique_ptr<Mailbox> mailbox_;
  at::Tensor scratch_ = at::empty({0}, at::kByte);
};

}  // namespace weft_torch
