#include "weft/comm/busy_cores.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace weft::comm {
namespace {

constexpr double kHardlyIdle = 0.2;  // of the time

// The next number of a line; -1: none.
long take_number(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return -1;
  line.remove_prefix(begin);
  long number = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return -1;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return number;
}

}  // namespace

std::vector<long> parse_idle_ticks(std::string_view text) {
  std::vector<long> idle;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    line.remove_prefix(3);
    const long core = take_number(line);
    if (core < 0 || core >= 1 << 16) continue;
    long number = 0;
    for (int field = 0; field < 4; ++field) number = take_number(line);  // user, nice, system, idle
    if (number < 0) continue;
    const long waiting = take_number(line);
    if (idle.size() <= static_cast<std::size_t>(core)) idle.resize(static_cast<std::size_t>(core) + 1, -1);
    idle[static_cast<std::size_t>(core)] = number + std::max(waiting, 0L);
  }
  return idle;
}

void BusyCores::look(Clock::time_point now) {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<long> idle = parse_idle_ticks(text);
  const std::chrono::duration<double> passed = now - looked_at_;
  const double ticks = passed.count() * static_cast<double>(sysconf(_SC_CLK_TCK));
  busy_.clear();
  if (passed <= kLatest && idle.size() == idle_ticks_.size())
    for (std::size_t core = 0; core < idle.size(); ++core)
      busy_.push_back(static_cast<double>(idle[core] - idle_ticks_[core]) < kHardlyIdle * ticks);
  idle_ticks_ = std::move(idle);
  looked_at_ = now;
}

std::optional<bool> BusyCores::busy(int core) {
  const auto now = Clock::now();
  if (now - looked_at_ >= kBetweenLooks) look(now);
  if (core < 0 || static_cast<std::size_t>(core) >= busy_.size()) return std::nullopt;
  return busy_[static_cast<std::size_t>(core)];
}

}  // namespace weft::comm
