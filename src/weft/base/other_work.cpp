#include "weft/base/other_work.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "weft/base/machine.h"

namespace weft {
namespace {

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
  std::ifstream file("/proc/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const double ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));  // a second
  return {busy_ticks(stat, allowed_processors()) / ticks, own_seconds()};
}

// The number that `text` begins with, which it then lacks; -1 where it does not.
double take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  long long number = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return static_cast<double>(number);
}

}  // namespace

double busy_ticks(std::string_view stat, std::span<const int> processors) {
  // cpu0 user nice system idle iowait irq softirq steal guest ..; a guest's are the user's already.
  constexpr bool kBusy[] = {true, true, true, false, false, true, true, true};
  double ticks = 0;
  while (!stat.empty()) {
    const std::size_t end = std::min(stat.find('\n'), stat.size());
    std::string_view line = stat.substr(0, end);
    stat.remove_prefix(std::min(end + 1, stat.size()));
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    line.remove_prefix(3);
    const auto number = static_cast<int>(take_number(line));
    if (std::ranges::find(processors, number) == processors.end()) continue;
    for (const bool busy : kBusy) {
      const double column = take_number(line);
      if (busy && column > 0) ticks += column;
    }
  }
  return ticks;
}

double share_of_others(const ProcessorTimes& before, const ProcessorTimes& after, double seconds,
                       int processors) {
  // Ticks are a hundredth of a second: less than this says nothing.
  constexpr double kLeastSeconds = 0.2;
  if (seconds < kLeastSeconds || processors < 1) return 0;
  const double others = (after.busy - before.busy) - (after.own - before.own);
  return std::clamp(others / (seconds * processors), 0.0, 1.0);
}

OtherWork::OtherWork() : before_(processor_times()) {}

double OtherWork::share() const {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return share_of_others(before_, processor_times(), seconds, available_processors());
}

}  // namespace weft
