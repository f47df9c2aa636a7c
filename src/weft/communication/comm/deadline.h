// weft/communication/comm/deadline.h -- deadlines of waits.
#pragma once
#include <chrono>

namespace weft::comm {

using Moment = std::chrono::steady_clock::time_point;

// The moment `time` from now; never, if that is more than a year away: the clock would overflow.
inline Moment moment_in(std::chrono::milliseconds time) {
  constexpr std::chrono::hours kYear{24 * 366};
  return time > kYear ? Moment::max() : std::chrono::steady_clock::now() + time;
}

// The same for a timeout, where 0 means none. Reads no clock if there is no timeout.
inline Moment deadline_of(std::chrono::milliseconds timeout) {
  return timeout.count() > 0 ? moment_in(timeout) : Moment::max();
}

inline bool has_passed(Moment deadline) {
  return deadline != Moment::max() && std::chrono::steady_clock::now() >= deadline;
}

}  // namespace weft::comm
