// weft/communication/comm/work.h -- handle of an asynchronous call.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/result.h"

namespace weft::comm {

// A started call. Cheap to copy; outlives the communicator.
class Work {
 public:
  Status wait() const;
  // Waits at most `patience`; returns nothing if the call is not done.
  std::optional<Status> wait_for(std::chrono::milliseconds patience) const;
  bool done() const;  // also true if it failed
  // Cancels the call on all ranks, unless one has started it: then it runs to completion and this
  // returns false. Called on one rank; wait() fails on all with "cancelled by rank 2".
  bool cancel() const;

  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weft::comm
