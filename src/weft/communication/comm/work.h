// weft/communication/comm/work.h -- a call that goes on while its caller does something else.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/result.h"

namespace weft::comm {

// A call that was started. Cheap to copy; outlives the communicator.
class Work {
 public:
  Status wait() const;
  // Waits no longer than that; nothing where the call goes on.
  std::optional<Status> wait_for(std::chrono::milliseconds patience) const;
  bool done() const;  // also when it failed
  // Takes the call back on all ranks, unless one of them has begun it: then it runs to its end and the answer
  // is false. One rank asks; wait() of all of them fails with "cancelled by rank 2".
  bool cancel() const;

  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weft::comm
