// weft/communication/comm/deadline.h -- until when something is waited for.
#pragma once
#include <chrono>

namespace weft::comm {

using Moment = std::chrono::steady_clock::time_point;

// In so long a time; never, where that is longer than a year: the clock's numbers end.
inline Moment moment_in(std::chrono::milliseconds time) {
  constexpr std::chrono::hours kYear{24 * 366};
  return time > kYear ? Moment::max() : std::chrono::steady_clock::now() + time;
}

// The same of a timeout, 0 being none. No clock is read for what has all the time there is.
inline Moment deadline_of(std::chrono::milliseconds timeout) {
  return timeout.count() > 0 ? moment_in(timeout) : Moment::max();
}

inline bool has_passed(Moment deadline) {
  return deadline != Moment::max() && std::chrono::steady_clock::now() >= deadline;
}

}  // namespace weft::comm
