#include "weft/planner/settings/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace weft::planner {
namespace {

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (status != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Reads h:mm:ss or mm:ss.
std::optional<double> read_clock(std::string_view text) {
  std::vector<double> parts;
  for (;;) {
    const auto part = take_number(text);
    if (!part) return std::nullopt;
    parts.push_back(*part);
    if (text.empty()) break;
    if (text.front() != ':') return std::nullopt;
    text.remove_prefix(1);
  }
  if (parts.size() > 3) return std::nullopt;
  double seconds = 0;
  for (const double part : parts) seconds = 60 * seconds + part;
  return seconds;
}

double seconds_of(std::string_view unit) {
  if (unit == "d") return 86400;
  if (unit == "h") return 3600;
  if (unit == "m" || unit == "min") return 60;
  if (unit == "s") return 1;
  return unit == "ms" ? 1e-3 : 0;
}

}  // namespace

std::optional<double> read_duration(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return read_clock(text);
  double seconds = 0;
  skip_blanks(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    skip_blanks(text);
    const std::string_view unit = text.substr(0, std::min(text.find_first_of(" 0123456789."), text.size()));
    const double factor = seconds_of(unit);
    if (factor == 0) return std::nullopt;
    seconds += factor * *number;
    text.remove_prefix(unit.size());
    skip_blanks(text);
  }
  return seconds;
}

}  // namespace weft::planner
