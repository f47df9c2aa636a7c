#include "weft/communication/comm/failure.h"

#include <algorithm>

namespace weft::comm {

std::optional<Error> Failure::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

Cause Failure::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

void Failure::set(Error error, Cause cause) {
  const std::lock_guard lock(mutex_);
  if (!error_) {
    error_ = std::move(error);
    cause_ = cause;
  }
  is_set_.store(true, std::memory_order_release);
}

void Failure::expect(std::int32_t rank, Error error) {
  const std::lock_guard lock(mutex_);
  expected_.emplace_back(rank, std::move(error));
  is_expected_.store(true, std::memory_order_release);
}

bool Failure::comes_true(std::chrono::nanoseconds blocked, std::int32_t waits_for) {
  if (blocked < kFarewell || !is_expected_.load(std::memory_order_acquire) || is_set()) return false;
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find(expected_, waits_for, &std::pair<std::int32_t, Error>::first);
  if (found == expected_.end() && blocked >= kLongFarewell) found = expected_.begin();
  if (found == expected_.end()) return false;
  if (!error_) {
    error_ = found->second;
    cause_ = Cause::left;
  }
  is_set_.store(true, std::memory_order_release);
  return true;
}

}  // namespace weft::comm
