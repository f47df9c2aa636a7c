// weft/communication/comm/failure.h -- the error that ended a communicator: the first one is kept,
// from any thread.
//
// A rank that left cleanly is not a failure yet: it may have sent all that it had to. A call that
// still waits for it after kFarewell fails. If the awaited rank is unknown, the call fails after a
// much longer time.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::comm {

// Why a group failed, for programs; the error message is for users.
enum class Cause : std::uint8_t {
  fault,    // mismatched calls, corrupted data, out of memory
  death,    // a rank failed: Communicator::dead_ranks() lists it
  left,     // a rank left while others waited for it
  timeout,  // a call timed out
  abort     // a rank called fail() or abort()
};

// Thread-safe.
class Failure {
 public:
  static constexpr std::chrono::milliseconds kFarewell{1000}, kLongFarewell{10'000};

  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  std::optional<Error> error() const;
  Cause cause() const;
  // Only the first error is kept.
  void set(Error error, Cause cause = Cause::fault);

  // A call that waits for `rank` fails with `error`.
  void expect(std::int32_t rank, Error error);
  // For a call that has been blocked this long and waits for rank `waits_for` (-1: unknown):
  // whether it has failed because a rank left.
  bool comes_true(std::chrono::nanoseconds blocked, std::int32_t waits_for);

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  Cause cause_ = Cause::fault;
  std::vector<std::pair<std::int32_t, Error>> expected_;  // rank and error, in the order in which they left
  std::atomic<bool> is_set_{false};
  std::atomic<bool> is_expected_{false};
};

}  // namespace weft::comm
