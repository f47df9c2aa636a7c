// weft/base/other_work.h -- how much of this machine others used meanwhile.
//
//   const OtherWork others;
//   measure();
//   if (others.share() > 0.15) ...        0.4: of two processors, 0.8 ran something else or were taken away
//
// Counted are the processors that this process may run on: what ran there, and what the machine below took of
// them, less what this process and the children it has waited for ran.
#pragma once
#include <chrono>
#include <span>
#include <string_view>

namespace weft {

// Seconds since the machine started.
struct ProcessorTimes {
  double busy = 0;  // all processors together, with what was stolen
  double own = 0;
  double stolen = 0;  // by the machine below a virtual one
};

class OtherWork {
 public:
  OtherWork();  // from now on

  // From 0 to 1; 0 too where the system does not say, or it was too short a time to tell.
  double share() const;
  // Of the time of these processors, what the machine below took; likewise.
  double stolen_share() const;

 private:
  double seconds() const;

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const ProcessorTimes before_;
};

// What /proc/stat says of these processors.
struct ProcessorTicks {
  double busy = 0, stolen = 0;
};
ProcessorTicks ticks_of(std::string_view stat, std::span<const int> processors);

// Of `processors` that there were for so many seconds.
double share_of_others(const ProcessorTimes& before, const ProcessorTimes& after, double seconds,
                       int processors);

}  // namespace weft
