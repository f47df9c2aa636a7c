#include "weft/translate/runs/run_fields.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace weft::runs {

std::string plain(std::string_view text) {
  std::string made;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      made += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

std::string Fields::text(std::string_view name) const {
  const auto found = row_.fields.find(name);
  return found == row_.fields.end() ? std::string() : found->second;
}

double Fields::number(std::string_view name, double otherwise) {
  const std::string given = text(name);
  if (given.empty()) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc() || end != given.data() + given.size()) return otherwise;
  if (!std::isfinite(value) || value < 0)
    fail(fmt::format("{} must be a positive number, found {}", name, given));
  return value;
}

std::int64_t Fields::whole(std::string_view name, std::int64_t otherwise, std::int64_t most) {
  const std::string given = text(name);
  if (given == "true") return 1;
  if (given == "false") return 0;
  const double value = number(name, static_cast<double>(otherwise));
  if (value != std::floor(value) || value > static_cast<double>(most)) {
    fail(fmt::format("{} must be a whole number of at most {}, found {}", name, most, given));
    return otherwise;
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t Fields::degree(std::string_view name) {
  const std::int64_t value = whole(name, 1, kMostDegree);
  if (value < 1) fail(fmt::format("{} must be at least 1, found {}", name, value));
  return std::max<std::int64_t>(value, 1);
}

std::int64_t Fields::needed(std::string_view name) {
  const std::int64_t value = whole(name, 0);
  if (value < 1) fail(fmt::format("{} is missing", name));
  return std::max<std::int64_t>(value, 1);
}

void Fields::fail(std::string message) {
  if (!error_) error_ = user_error(std::move(message));
}

}  // namespace weft::runs
