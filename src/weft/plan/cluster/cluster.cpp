#include "weft/plan/cluster/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace weft::cluster {
namespace {

constexpr std::array<std::string_view, kShapes> kShapeNames = {
    "", "switch", "ring", "full", "mesh", "torus", "hybrid_cube_mesh", "mi250"};

}  // namespace

std::string_view name(Shape shape) { return kShapeNames[static_cast<std::size_t>(shape)]; }

std::optional<Shape> find_shape(std::string_view name) {
  for (std::size_t shape = 1; shape < kShapes; ++shape)
    if (kShapeNames[shape] == name) return static_cast<Shape>(shape);
  return std::nullopt;
}

double share_among(const Link& link, std::int64_t nodes) {
  if (link.scaling.empty() || nodes < 2) return 1;
  const auto above = std::ranges::lower_bound(link.scaling, nodes, {}, &LinkShare::nodes);
  if (above == link.scaling.begin()) return above->share;
  if (above == link.scaling.end()) return link.scaling.back().share;
  const LinkShare& below = *(above - 1);
  const auto log_of = [](std::int64_t number) { return std::log(static_cast<double>(number)); };
  const double part = (log_of(nodes) - log_of(below.nodes)) / (log_of(above->nodes) - log_of(below.nodes));
  return below.share * std::pow(above->share / below.share, part);
}

std::int64_t devices_of(const Link& link, std::int64_t any) {
  switch (link.shape) {
    case Shape::hybrid_cube_mesh: return 8;
    case Shape::mi250: return 16;
    case Shape::mesh:
    case Shape::torus: {
      constexpr std::int64_t kMost = 1 << 24;
      std::int64_t product = link.sides.empty() ? 0 : 1;
      for (const std::int64_t side : link.sides) {
        if (side < 1 || side > kMost) return 0;
        product *= side;
        if (product > kMost) return 0;
      }
      return product;
    }
    default: return any;
  }
}

Device weakest_of(std::span<const Device> devices) {
  Device weakest = devices.front();
  std::vector<std::string> names;
  double slowest = std::numeric_limits<double>::infinity();
  for (const Device& device : devices) {
    if (std::ranges::find(names, device.name) == names.end()) names.push_back(device.name);
    for (std::size_t p = 0; p < kPrecisions; ++p)
      weakest.flops_per_second[p] = std::min(weakest.flops_per_second[p], device.flops_per_second[p]);
    weakest.memory_bytes = std::min(weakest.memory_bytes, device.memory_bytes);
    weakest.memory_bytes_per_second =
        std::min(weakest.memory_bytes_per_second, device.memory_bytes_per_second);
    weakest.launch_seconds = std::max(weakest.launch_seconds, device.launch_seconds);
    weakest.reach = std::min(weakest.reach, device.reach);
    for (std::size_t k = 0; k < kKernelKinds; ++k)
      weakest.kernels[k] = std::min(weakest.kernels[k], device.kernels[k]);
    const double fastest = *std::ranges::max_element(device.flops_per_second);
    if (fastest < slowest) {
      weakest.rates = device.rates;
      weakest.rates_digest = device.rates_digest;
    }
    slowest = std::min(slowest, fastest);
  }
  // The devices share no precision: each computes in its own.
  if (std::ranges::max(weakest.flops_per_second) == 0)
    weakest.flops_per_second[static_cast<std::size_t>(Precision::f32)] = slowest;
  weakest.name = fmt::format("{}", fmt::join(names, "+"));
  return weakest;
}

Device device_of_nodes(const Cluster& cluster, std::span<const std::int64_t> nodes) {
  if (!cluster.is_mixed()) return cluster.device;
  std::vector<Device> devices;
  std::int64_t first = 0;
  for (const DeviceKind& kind : cluster.kinds) {
    const auto is_one = [&](std::int64_t node) { return node >= first && node < first + kind.nodes; };
    if (std::ranges::any_of(nodes, is_one)) devices.push_back(kind.device);
    first += kind.nodes;
  }
  return weakest_of(devices);
}

std::string print_devices(const Cluster& cluster) {
  if (!cluster.is_mixed()) return cluster.device.name;
  std::string text;
  for (const DeviceKind& kind : cluster.kinds)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind.nodes * cluster.axes.back().size,
                        kind.device.name);
  return text;
}

}  // namespace weft::cluster
