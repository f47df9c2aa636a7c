#include "weft/planner/search/distribution/meshes.h"

#include <algorithm>

namespace weft::search {
namespace {

using Factors = std::vector<std::int64_t>;  // outer first

std::vector<Factors> factors_of(std::int64_t size, bool whole) {
  std::vector<Factors> found = {{size}};
  if (whole) return found;
  for (std::int64_t outer = 2; outer * 2 <= size; ++outer)
    if (size % outer == 0) found.push_back({outer, size / outer});
  return found;
}

void add_axis(MeshOption& option, const cluster::Axis& axis, std::size_t number, const Factors& factors) {
  for (std::size_t f = 0; f < factors.size(); ++f) {
    std::string name = axis.name;
    if (factors.size() > 1) name += f == 0 ? "_a" : "_b";
    option.mesh.axes.push_back({std::move(name), static_cast<std::int32_t>(factors[f])});
    option.cluster_axis.push_back(number);
  }
}

}  // namespace

std::vector<MeshOption> meshes_of(const cluster::Cluster& cluster, std::span<const std::string> whole) {
  std::vector<MeshOption> options(1);
  for (std::size_t a = 0; a < cluster.axes.size(); ++a) {
    const cluster::Axis& axis = cluster.axes[a];
    if (axis.size <= 1) continue;
    std::vector<MeshOption> longer;
    for (const Factors& factors : factors_of(axis.size, std::ranges::find(whole, axis.name) != whole.end()))
      for (const MeshOption& option : options) {
        longer.push_back(option);
        add_axis(longer.back(), axis, a, factors);
      }
    options = std::move(longer);
  }
  if (options.front().mesh.axes.empty() && !cluster.axes.empty())
    add_axis(options.front(), cluster.axes.back(), cluster.axes.size() - 1, {cluster.axes.back().size});
  std::ranges::stable_sort(options, {}, [](const MeshOption& option) { return option.mesh.axes.size(); });
  return options;
}

}  // namespace weft::search
