#include "weft/app/explain/progress.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/base/utf8.h"

namespace weft::explain {
namespace {

constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;  // seconds

// Joins non-empty parts with two spaces.
std::string join(std::initializer_list<std::string_view> parts) {
  std::string line;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!line.empty()) line += "  ";
    line += part;
  }
  return line;
}

// Replaces control characters in a quoted name, so that the output stays on one line.
std::string name_of(const Progress& progress) {
  std::string name = progress.model;
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  std::ranges::replace_if(name, is_control, ' ');
  return name;
}

// An upper bound on terminal columns: from U+1000 on, where wide characters start, counts two per
// character.
std::size_t columns_of(std::string_view name) {
  constexpr unsigned char kFirstWide = 0xE1;  // lead byte of U+1000
  std::size_t columns = 0;
  for (const char byte : name)
    if (starts_character(byte)) columns += static_cast<unsigned char>(byte) >= kFirstWide ? 2 : 1;
  return columns;
}

// "loss 0.0418": has constant width from 9 down to 0.001, so that the line does not jump.
std::string loss_of(const Progress& progress) {
  if (!progress.has_loss) return {};
  const double loss = progress.loss, size = std::fabs(loss);
  if (std::isnan(loss)) return "loss nan";  // never -nan
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e4) || std::isinf(loss);
  return plain ? fmt::format("loss {:.4f}", loss) : fmt::format("loss {:.2e}", loss);
}

// "281 k rows/s", or per minute or hour for slow rates.
std::string rate_of(const Progress& progress) {
  constexpr double kMost = 1e21;  // larger values are invalid
  const double rate = progress.rows_per_second;
  if (!(rate > 0 && rate < kMost)) return {};
  constexpr std::pair<double, std::string_view> kUnits[] = {{1, "s"}, {kMinute, "min"}, {kHour, "h"}};
  for (const auto& [seconds, unit] : kUnits)
    if (rate * seconds >= 0.995)
      return fmt::format("{} {}/{}", print_count(rate * seconds), progress.what, unit);
  return {};
}

// Empty if unknown or done.
std::optional<std::int64_t> seconds_left(const Progress& progress) {
  constexpr double kMost = 1e12;  // some 30,000 years; larger values are invalid
  const double seconds = progress.seconds_left;
  if (!(seconds >= 0 && seconds < kMost)) return std::nullopt;
  if (progress.steps > 0 && progress.step >= progress.steps) return std::nullopt;
  return std::llround(seconds);
}

// "0:03 left", "1:02:03 left", "12 d left".
std::string clock_left(const Progress& progress) {
  const std::optional<std::int64_t> left = seconds_left(progress);
  if (!left) return {};
  const std::int64_t minutes = *left % kHour / kMinute, seconds = *left % kMinute;
  if (*left >= 4 * kDay) return fmt::format("{} d left", print_exact(*left / kDay));
  if (*left >= kHour) return fmt::format("{}:{:02}:{:02} left", *left / kHour, minutes, seconds);
  return fmt::format("{}:{:02} left", minutes, seconds);
}

// "3 s left", "2 min 5 s left", "1 h 4 min left", "12 d 3 h left".
std::string words_left(const Progress& progress) {
  const std::optional<std::int64_t> left = seconds_left(progress);
  if (!left) return {};
  const auto in = [&](std::int64_t large, std::string_view larges, std::int64_t small,
                      std::string_view smalls) {
    const std::int64_t rest = *left % large / small;
    const std::string whole = fmt::format("{} {}", print_exact(*left / large), larges);
    return rest == 0 ? whole + " left" : fmt::format("{} {} {} left", whole, rest, smalls);
  };
  if (*left >= kDay) return in(kDay, "d", kHour, "h");
  if (*left >= kHour) return in(kHour, "h", kMinute, "min");
  if (*left >= kMinute) return in(kMinute, "min", 1, "s");
  return fmt::format("{} s left", *left);
}

// "  612/1,350": padded to constant width.
std::string step_of(const Progress& progress) {
  const std::string step = print_exact(progress.step);
  if (progress.steps <= 0) return "step " + step;
  const std::string steps = print_exact(progress.steps);
  return fmt::format("{:>{}}/{}", step, steps.size(), steps);
}

double part_done(const Progress& progress) {
  return std::clamp(static_cast<double>(progress.step) / static_cast<double>(progress.steps), 0.0, 1.0);
}

std::string bar(const Progress& progress, std::size_t length, bool unicode) {
  const std::string_view full = unicode ? "━" : "=", half = unicode ? "╸" : ">", rest = unicode ? "─" : "-";
  const auto halves = static_cast<std::size_t>(part_done(progress) * 2 * static_cast<double>(length));
  std::string text;
  for (std::size_t i = 0; i < length; ++i)
    text += 2 * i + 2 <= halves ? full : 2 * i + 1 == halves ? half : rest;
  return text;
}

std::string search_line(const Progress& progress, const SearchProgress& search, std::size_t columns) {
  const std::string name = name_of(progress);
  const std::string looked =
      fmt::format("tried {} plan{}", print_exact(progress.step), progress.step == 1 ? "" : "s");
  const std::string best =
      search.best_seconds > 0 ? "best " + print_seconds(search.best_seconds) : "none fits yet";
  const std::string bound = search.bound_seconds > 0 ? "bound " + print_seconds(search.bound_seconds) : "";
  const auto seconds = static_cast<std::int64_t>(search.seconds);
  const std::string clock = fmt::format("{}:{:02}", seconds / kMinute, seconds % kMinute);
  for (int kept = 4; kept >= 0; --kept) {
    const auto from = [&](int least, std::string_view part) { return kept >= least ? part : ""; };
    const std::string_view model = from(3, name);
    const std::string tail = join({looked, from(1, best), from(4, bound), from(2, clock)});
    if (tail.size() + (model.empty() ? 0 : columns_of(model) + 2) <= columns) return join({model, tail});
  }
  return {};
}

}  // namespace

std::string progress_bar(const Progress& progress, int width, bool unicode) {
  constexpr std::size_t kShortestBar = 8, kLongestBar = 30;
  if (progress.search)
    return search_line(progress, *progress.search, static_cast<std::size_t>(std::max(width, 0)));
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  const std::string name = name_of(progress), step = step_of(progress), loss = loss_of(progress);
  const std::string rate = rate_of(progress), left = clock_left(progress);
  const bool has_bar = progress.steps > 0;
  for (int kept = 5; kept >= 0; --kept) {
    const auto from = [&](int least, std::string_view part) { return kept >= least ? part : ""; };
    const std::string tail = join({step, from(1, loss), from(5, rate), from(4, left)});
    const std::string_view model = from(2, name);
    std::size_t taken = tail.size() + (model.empty() ? 0 : columns_of(model) + 2);
    if (kept < 3 || !has_bar) {
      if (taken <= columns) return join({model, tail});
    } else if (taken += kShortestBar + 2; taken <= columns) {
      const std::size_t length = std::min(kShortestBar + columns - taken, kLongestBar);
      return join({model, bar(progress, length, unicode), tail});
    }
  }
  // A truncated step number would be wrong, so print a percentage or nothing.
  const std::string percent = has_bar ? fmt::format("{:.0f}%", std::floor(100 * part_done(progress))) : "";
  return percent.size() <= columns ? percent : "";
}

std::string progress_line(const Progress& progress) {
  std::string step = fmt::format("step {}", print_exact(progress.step));
  if (progress.steps > 0) step += fmt::format(" of {}", print_exact(progress.steps));
  return join({step, loss_of(progress), rate_of(progress), words_left(progress)}) + "\n";
}

}  // namespace weft::explain
