// weft/communication/comm/failure.h -- the error that ended a communicator: the first one stays, whichever thread found it.
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

// Why a group cannot go on, for programs; the text of its error is for people.
enum class Cause : std::uint8_t {
  fault,    // calls that do not match, damaged bytes, no memory
  death,    // a rank died: Communicator::dead_ranks() says who
  left,     // a rank left while others waited for it
  timeout,  // a call was late
  abort     // a rank gave up, by fail() or abort()
};

// All of it from any thread.
class Failure {
 public:
  static constexpr std::chrono::milliseconds kFarewell{1000}, kLongFarewell{10'000};

  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  std::optional<Error> error() const;
  Cause cause() const;
  // Only the first is kept.
  void set(Error error, Cause cause = Cause::fault);

  // `error` is what a call that waits for `rank` fails with.
  void expect(std::int32_t rank, Error error);
  // Of a call that has been blocked for so long and waits for this rank (-1: not known): whether it has
  // failed because somebody left.
  bool comes_true(std::chrono::nanoseconds blocked, std::int32_t waits_for);

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  Cause cause_ = Cause::fault;
  std::vector<std::pair<std::int32_t, Error>> expected_;  // by rank, in the order of their leaving
  std::atomic<bool> is_set_{false};
  std::atomic<bool> is_expected_{false};
};

}  // namespace weft::comm
