// weft/collectives/synthesis/deadline.h -- the time by which a search must return its best result.
#pragma once
#include <chrono>
#include <stop_token>

namespace weft::synthesis {

struct Deadline {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::time_point::max();
  std::stop_token stop;

  static Deadline after(double seconds) {
    const auto span = std::chrono::duration<double>(seconds < 1e8 ? seconds : 1e8);
    return {Clock::now() + std::chrono::duration_cast<Clock::duration>(span), {}};
  }
  bool over() const {
    return stop.stop_requested() || (end != Clock::time_point::max() && Clock::now() >= end);
  }
};

}  // namespace weft::synthesis
