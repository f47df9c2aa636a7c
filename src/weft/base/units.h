// weft/base/units.h -- quantities with units, in the notation of the field.
//
//   "1.5 us"  "450 GB/s"  "40 GiB"  "989 TFLOP/s"  "3.2 GFLOP"
//
// k, M, G, T, P, E are powers of 1000; Ki, Mi, Gi, Ti, Pi of 1024. Times are s, ms, us, ns, min, h.
// A Quantity is stored in the base unit of its dimension: bytes, seconds, operations.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft {

enum class Dimension : std::uint8_t { count, bytes, seconds, flops, bytes_per_second, flops_per_second };

std::string_view name(Dimension dimension);     // "a time", "a size in bytes", ...
std::string_view example(Dimension dimension);  // "1.5 us", "40 GiB", ...

struct Quantity {
  double value = 0;
  Dimension dimension = Dimension::count;

  friend bool operator==(const Quantity&, const Quantity&) = default;
};

// The dimension and factor of a unit such as "GiB", "us" or "TFLOP/s"; empty if it is unknown.
std::optional<Quantity> find_unit(std::string_view unit);

// Parses "40 GiB" or "40GiB" or "12".
Result<Quantity> parse_quantity(std::string_view text);

// Short forms with three significant digits: "1.05 ms", "40 GiB", "3.35 TB/s".
std::string print_bytes(double bytes);
std::string print_seconds(double seconds);
std::string print_count(double count);            // "124 M"
std::string print_flops(double flops);            // "289 GFLOP"
std::string print_rate(double bytes_per_second);  // "450 GB/s"
std::string print(const Quantity& quantity);

// Exact, with thousands separators: "124,439,808".
std::string print_exact(std::int64_t count);

}  // namespace weft
