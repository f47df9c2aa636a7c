// weft/comm/failure.h -- what ended a communicator: the first error stays, whoever found it.
//
// A rank that left in peace is no failure yet: it may have sent all that it had to. A call that still waits
// for it after a moment (kFarewell) fails. Where it is not known for whom a call waits, it fails after a long
// while.
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

// All of it from any thread.
class Failure {
 public:
  static constexpr std::chrono::milliseconds kFarewell{1000}, kLongFarewell{10'000};

  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  std::optional<Error> error() const;
  // Only the first is kept.
  void set(Error error);

  // `error` is what a call that waits for `rank` fails with.
  void expect(std::int32_t rank, Error error);
  // Of a call that has been blocked for so long and waits for this rank (-1: not known): whether it has
  // failed because somebody left.
  bool comes_true(std::chrono::nanoseconds blocked, std::int32_t waits_for);

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  std::vector<std::pair<std::int32_t, Error>> expected_;  // by rank, in the order of their leaving
  std::atomic<bool> is_set_{false};
  std::atomic<bool> is_expected_{false};
};

}  // namespace weft::comm
