#include "weft/base/background_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "weft/base/kernel_file.h"
#include "weft/base/machine.h"

namespace weft {
namespace {

// A tick is 10 ms: shorter intervals are too inaccurate.
constexpr double kLeastSeconds = 0.2;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds() {
  double seconds = 0;
  for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(whose, &usage) == 0) seconds += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return seconds;
}

ProcessorTimes processor_times() {
  const double ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));  // per second
  const ProcessorTicks counted = ticks_of(read_kernel_file("/proc/stat"), allowed_processors());
  return {counted.busy / ticks, own_seconds(), counted.stolen / ticks};
}

// Removes and returns the number at the start of `text`; -1 if there is none.
double take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  long long number = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return static_cast<double>(number);
}

}  // namespace

ProcessorTicks ticks_of(std::string_view stat, std::span<const int> processors) {
  // cpu0 user nice system idle iowait irq softirq steal guest ..; guest time is included in user
  // time.
  constexpr bool kBusy[] = {true, true, true, false, false, true, true, true};
  constexpr std::size_t kStolen = 7;
  ProcessorTicks ticks;
  while (!stat.empty()) {
    const std::size_t end = std::min(stat.find('\n'), stat.size());
    std::string_view line = stat.substr(0, end);
    stat.remove_prefix(std::min(end + 1, stat.size()));
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    line.remove_prefix(3);
    const auto number = static_cast<int>(take_number(line));
    if (std::ranges::find(processors, number) == processors.end()) continue;
    for (std::size_t column = 0; column < std::size(kBusy); ++column) {
      const double count = std::max(0.0, take_number(line));
      if (kBusy[column]) ticks.busy += count;
      if (column == kStolen) ticks.stolen += count;
    }
  }
  return ticks;
}

double background_share(const ProcessorTimes& before, const ProcessorTimes& after, double seconds,
                        int processors) {
  if (seconds < kLeastSeconds || processors < 1) return 0;
  const double others = (after.busy - before.busy) - (after.own - before.own);
  return std::clamp(others / (seconds * processors), 0.0, 1.0);
}

BackgroundLoad::BackgroundLoad() : before_(processor_times()) {}

double BackgroundLoad::share() const {
  return background_share(before_, processor_times(), seconds(), available_processors());
}

double BackgroundLoad::stolen_share() const {
  const double all = seconds() * available_processors();
  if (seconds() < kLeastSeconds) return 0;
  return std::clamp((processor_times().stolen - before_.stolen) / all, 0.0, 1.0);
}

double BackgroundLoad::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

}  // namespace weft
