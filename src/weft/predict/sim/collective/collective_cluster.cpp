#include "weft/predict/sim/collective/collective_cluster.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/predict/sim/collective/cost_table.h"

namespace weft::sim {
namespace {

Result<std::int64_t> parse_size(std::string_view text) {
  WEFT_TRY(quantity, parse_quantity(text));
  const bool is_size = quantity.dimension == Dimension::bytes || quantity.dimension == Dimension::count;
  if (!is_size || !(quantity.value >= 1) || quantity.value > 1e13)
    return user_error(fmt::format("expected a size in bytes, found {}", text),
                      "sizes are written 1KiB, 16 MiB, 1000");
  return static_cast<std::int64_t>(std::llround(quantity.value));
}

}  // namespace

Result<CollectiveCluster> wires_of(const cluster::Cluster& found) {
  WEFT_TRY(topology, cluster::topology_of(found));
  CollectiveCluster made;
  made.topology = std::move(topology);
  made.local = static_cast<std::int32_t>(found.axes.back().size);
  made.sides = found.axes.back().link.sides;
  return made;
}

// One threadblock moves 20 to 24 GB/s (sim/collective/run_parameters.cpp).
std::int32_t threadblocks_for(double bytes_per_second) {
  constexpr double kBlockRate = 20e9, kMostThreadblocks = 24;
  return static_cast<std::int32_t>(
      std::clamp(std::ceil(bytes_per_second / kBlockRate), 2.0, kMostThreadblocks));
}

std::int32_t channels_of(const CollectiveCluster& cluster) {
  double rate = 0;
  for (const cluster::DirectedLink& link : cluster.topology.links)
    if (link.from == 0) rate += link.bytes_per_second;
  return threadblocks_for(rate);
}

void fill_parameters(const collective::Algorithm& algorithm, const CollectiveCluster& cluster,
                     std::int32_t instances, collective::Arguments& arguments) {
  const auto give = [&](std::string_view name, std::int64_t value) {
    const auto takes = [&](const collective::Algorithm::Parameter& parameter) {
      return parameter.name == name;
    };
    if (std::ranges::any_of(algorithm.parameters(), takes)) arguments.try_emplace(std::string(name), value);
  };
  give("ranks", cluster.topology.devices);
  if (instances == 1) give("channels", channels_of(cluster));
  if (cluster.local > 1 && cluster.local < cluster.topology.devices) give("local", cluster.local);
  if (cluster.sides.size() == 2) {
    give("rows", cluster.sides[0]);
    give("columns", cluster.sides[1]);
  }
}

Result<std::vector<std::int64_t>> parse_sizes(std::string_view text) {
  if (text.empty()) return sim::message_sizes();
  const std::size_t dots = text.find("..");
  WEFT_TRY(least, parse_size(text.substr(0, dots)));
  if (dots == std::string_view::npos) return std::vector{least};
  WEFT_TRY(most, parse_size(text.substr(dots + 2)));
  if (least > most)
    return user_error(fmt::format("sizes must ascend, found {}", text),
                      "write the smaller first: 1KiB..1GiB");
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size <= most; size *= 2) sizes.push_back(size);
  if (sizes.back() != most) sizes.push_back(most);
  return sizes;
}

}  // namespace weft::sim
