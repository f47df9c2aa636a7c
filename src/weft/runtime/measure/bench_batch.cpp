#include "weft/runtime/measure/bench_batch.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::measure {
namespace {

constexpr double kBatchSeconds = 0.010;
constexpr std::int64_t kMostCalls = 200'000;
constexpr std::int64_t kLargestMessage = std::int64_t{4} << 30;

}  // namespace

Result<std::vector<std::int64_t>> bench_sizes(std::string_view text, std::int32_t step) {
  if (step < 2 || step > 1024) return user_error(fmt::format("expected a step of 2 to 1024, found {}", step));
  WEFT_TRY(doubling, sim::parse_sizes(text));
  const std::int64_t least = doubling.front(), most = doubling.back();
  if (least < 1 || most > kLargestMessage)
    return user_error(fmt::format("expected sizes of 1 B to {}, found {}",
                                  print_bytes(static_cast<double>(kLargestMessage)), text));
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size <= most; size *= step) sizes.push_back(size);
  if (sizes.back() != most) sizes.push_back(most);
  return sizes;
}

std::int64_t calls_per_batch(double seconds) {
  if (!(seconds > 0)) return kMostCalls;
  return static_cast<std::int64_t>(
      std::clamp(std::round(kBatchSeconds / seconds), 1.0, static_cast<double>(kMostCalls)));
}

}  // namespace weft::measure
