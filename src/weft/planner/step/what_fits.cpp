#include "weft/planner/step/what_fits.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {
namespace {

// Each try may take as long as the search that failed.
constexpr int kMostTries = 3;

// The smallest power of two that covers the ratio of needed to available memory.
std::int64_t first_factor(const search::TooLarge& large) {
  constexpr double kMost = 1 << 20;
  const double ratio = std::clamp(large.bytes / large.limit, 1.0, kMost);
  return std::int64_t{1} << std::max(1, static_cast<int>(std::ceil(std::log2(ratio))));
}

std::optional<std::string> smaller_batch(const Knowledge& state, const Prepared& prepared,
                                         const search::TooLarge& large, const Fits& fits) {
  const std::vector<std::string> batch = distribute::index_roles(prepared.plan.graph).batch;
  if (batch.empty()) return std::nullopt;
  const auto sizes = prepared.named_sizes();
  const auto size = std::ranges::find(sizes, batch.front(), [](const auto& one) { return one.first; });
  if (size == sizes.end()) return std::nullopt;
  std::int64_t smaller = std::max<std::int64_t>(size->second / first_factor(large), 1);
  for (int tried = 0; tried < kMostTries && smaller < size->second; ++tried, smaller /= 2) {
    if (smaller < 1) break;
    const language::SizeOverride given{size->first, smaller, {}};
    const auto again = prepare_again(state, prepared, {&given, 1});
    if (!again.ok()) break;  // the model rejects this size
    if (fits(again->settings, again->target, again->plan.graph))
      return fmt::format("{} = {} fits", size->first, smaller);  // in WeftQL syntax
  }
  return std::nullopt;
}

std::optional<std::string> more_devices(const Prepared& prepared, const search::TooLarge& large,
                                        const Fits& fits) {
  constexpr std::int64_t kMostDevices = 1 << 14;
  if (prepared.target.on_processors() || prepared.target.axes.empty() || prepared.target.is_mixed())
    return std::nullopt;
  cluster::Cluster larger = prepared.target;
  cluster::Axis& outer = larger.axes.front();
  outer.size *= first_factor(large);
  if (larger.devices() > kMostDevices || !fits(prepared.settings, larger, prepared.plan.graph))
    return std::nullopt;
  return fmt::format("{} {}s of {} fit, {} devices in all", print_exact(outer.size), outer.name, larger.name,
                     print_exact(larger.devices()));
}

std::optional<std::string> more_memory(const Prepared& prepared, const search::TooLarge& large,
                                       const Fits& fits) {
  // Printing three digits may round down.
  const std::string limit = print_bytes(1.01 * large.bytes);
  const auto written = parse_quantity(limit);
  if (!written.ok()) return std::nullopt;
  Settings settings = prepared.settings;
  settings.memory_limit = written->value;
  if (!fits(settings, prepared.target, prepared.plan.graph)) return std::nullopt;
  return fmt::format("a memory_limit of {}", limit);
}

}  // namespace

std::string what_fits(const Knowledge& state, const Prepared& prepared, const search::TooLarge& large,
                      const Fits& fits) {
  std::optional<std::string> first;
  if (large.grows_with_batch) first = smaller_batch(state, prepared, large, fits);
  if (!first) first = more_devices(prepared, large, fits);
  const std::optional<std::string> memory = more_memory(prepared, large, fits);
  if (first && memory) return fmt::format("{}, or {}", *first, *memory);
  return first.value_or(memory.value_or(""));
}

}  // namespace weft::planner
