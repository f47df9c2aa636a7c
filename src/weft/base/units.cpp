#include "weft/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace weft {
namespace {

struct Prefix {
  std::string_view text;
  double factor;
};

constexpr std::array<Prefix, 12> kPrefixes = {{{"Ki", 1024.0},
                                               {"Mi", 1048576.0},
                                               {"Gi", 1073741824.0},
                                               {"Ti", 1099511627776.0},
                                               {"Pi", 1125899906842624.0},
                                               {"k", 1e3},
                                               {"K", 1e3},
                                               {"M", 1e6},
                                               {"G", 1e9},
                                               {"T", 1e12},
                                               {"P", 1e15},
                                               {"E", 1e18}}};

struct Base {
  std::string_view text;
  Dimension dimension;
  double factor;
};

// "b/s" counts bits, as network vendors do: 400 Gb/s is 50 GB/s.
constexpr std::array<Base, 8> kPrefixed = {{{"B", Dimension::bytes, 1},
                                            {"B/s", Dimension::bytes_per_second, 1},
                                            {"b/s", Dimension::bytes_per_second, 0.125},
                                            {"FLOP", Dimension::flops, 1},
                                            {"FLOPs", Dimension::flops, 1},
                                            {"FLOP/s", Dimension::flops_per_second, 1},
                                            {"FLOPS", Dimension::flops_per_second, 1},
                                            {"OP/s", Dimension::flops_per_second, 1}}};

constexpr std::array<Base, 6> kPlain = {{{"s", Dimension::seconds, 1},
                                         {"ms", Dimension::seconds, 1e-3},
                                         {"us", Dimension::seconds, 1e-6},
                                         {"ns", Dimension::seconds, 1e-9},
                                         {"min", Dimension::seconds, 60},
                                         {"h", Dimension::seconds, 3600}}};

// Three significant digits without trailing zeros or exponents: 1.05, 40, 335.
std::string three_digits(double value) {
  const int before = value >= 100 ? 3 : value >= 10 ? 2 : 1;
  std::string text = fmt::format("{:.{}f}", value, 3 - before);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string scaled(double value, double step, std::span<const std::string_view> names,
                   std::string_view unit) {
  if (!std::isfinite(value)) return fmt::format("{} {}", value, unit);
  const bool negative = value < 0;
  value = std::fabs(value);
  std::size_t level = 0;
  // 999.5 would print as 1000 with three digits: use the next unit from there on.
  while (value >= step * 0.9995 && level + 1 < names.size()) {
    value /= step;
    ++level;
  }
  const std::string digits = three_digits(value);
  const std::string suffix = fmt::format("{}{}", names[level], unit);
  return fmt::format("{}{}{}{}", negative ? "-" : "", digits, suffix.empty() ? "" : " ", suffix);
}

constexpr std::array<std::string_view, 7> kDecimal = {"", "k", "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

}  // namespace

std::string_view name(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "a plain number";
    case Dimension::bytes: return "a size in bytes";
    case Dimension::seconds: return "a time";
    case Dimension::flops: return "a number of operations";
    case Dimension::bytes_per_second: return "a bandwidth";
    case Dimension::flops_per_second: return "a compute rate";
  }
  return "a quantity";
}

std::string_view example(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "8";
    case Dimension::bytes: return "40 GiB";
    case Dimension::seconds: return "1.5 us";
    case Dimension::flops: return "3 GFLOP";
    case Dimension::bytes_per_second: return "450 GB/s";
    case Dimension::flops_per_second: return "989 TFLOP/s";
  }
  return "";
}

std::optional<Quantity> find_unit(std::string_view unit) {
  for (const Base& base : kPlain)
    if (unit == base.text) return Quantity{base.factor, base.dimension};
  for (const Base& base : kPrefixed) {
    if (!unit.ends_with(base.text)) continue;
    const std::string_view prefix = unit.substr(0, unit.size() - base.text.size());
    if (prefix.empty()) return Quantity{base.factor, base.dimension};
    for (const Prefix& known : kPrefixes)
      if (prefix == known.text) return Quantity{base.factor * known.factor, base.dimension};
  }
  return std::nullopt;
}

Result<Quantity> parse_quantity(std::string_view text) {
  const auto trim = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  };
  text = trim(text);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || !std::isfinite(number))
    return user_error(fmt::format("expected a number with a unit such as 40 GiB, found '{}'", text));
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.empty()) return Quantity{number, Dimension::count};
  const std::optional<Quantity> found = find_unit(unit);
  if (!found)
    return user_error(
        fmt::format("unknown unit '{}'", unit),
        "units are B, B/s, b/s, FLOP, FLOP/s with k M G T P or Ki Mi Gi Ti Pi, and ns us ms s min h");
  return Quantity{number * found->value, found->dimension};
}

std::string print_bytes(double bytes) { return scaled(bytes, 1024, kBinary, "B"); }
std::string print_count(double count) { return scaled(count, 1000, kDecimal, ""); }
std::string print_flops(double flops) { return scaled(flops, 1000, kDecimal, "FLOP"); }
std::string print_rate(double rate) { return scaled(rate, 1000, kDecimal, "B/s"); }

std::string print_seconds(double seconds) {
  const double size = std::fabs(seconds);
  if (size >= 0.9995) return three_digits(seconds) + " s";
  if (size >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
  if (size >= 0.9995e-6) return three_digits(seconds * 1e6) + " us";
  return three_digits(seconds * 1e9) + " ns";
}

std::string print(const Quantity& quantity) {
  switch (quantity.dimension) {
    case Dimension::count: return fmt::format("{}", quantity.value);
    case Dimension::bytes: return print_bytes(quantity.value);
    case Dimension::seconds: return print_seconds(quantity.value);
    case Dimension::flops: return print_flops(quantity.value);
    case Dimension::bytes_per_second: return print_rate(quantity.value);
    case Dimension::flops_per_second: return scaled(quantity.value, 1000, kDecimal, "FLOP/s");
  }
  return {};
}

std::string print_exact(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (left % 3 == 0 && !out.empty() && out.back() != '-') out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace weft
