// weft/base/background_load.h -- measures how much of this machine other processes used.
//
//   const BackgroundLoad others;
//   measure();
//   if (others.share() > 0.15) ...        0.4: of two processors, others or the hypervisor used 0.8
//
// Counts the processors that this process may run on: their busy time plus the time that the
// hypervisor stole, less the time of this process and of the children it has waited for.
#pragma once
#include <chrono>
#include <span>
#include <string_view>

namespace weft {

// Seconds since the machine started.
struct ProcessorTimes {
  double busy = 0;  // sum over processors, including stolen time
  double own = 0;
  double stolen = 0;  // by the hypervisor
};

class BackgroundLoad {
 public:
  BackgroundLoad();  // starts measuring

  // From 0 to 1; 0 if the system does not report it or the interval was too short.
  double share() const;
  // The share that the hypervisor stole, with the same limits.
  double stolen_share() const;

 private:
  double seconds() const;

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const ProcessorTimes before_;
};

// The entries of /proc/stat for these processors.
struct ProcessorTicks {
  double busy = 0, stolen = 0;
};
ProcessorTicks ticks_of(std::string_view stat, std::span<const int> processors);

// The share of `processors` over an interval of this many seconds.
double background_share(const ProcessorTimes& before, const ProcessorTimes& after, double seconds,
                        int processors);

}  // namespace weft
