#include "weft/predict/cost/mesh_links.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::cost {
namespace {

bool is_factor_of(std::string_view mesh_axis, std::string_view cluster_axis) {
  if (!mesh_axis.starts_with(cluster_axis)) return false;
  return mesh_axis.size() == cluster_axis.size() || mesh_axis[cluster_axis.size()] == '_';
}

// The fraction of its device's rate that a rank gets in a group of `ranks`, `stride` apart. Behind
// a switch it gets all of it. In a full mesh it gets the cables to the other members of the group.
// On a ring or torus it gets all of it if the group is the whole ring. A part of a ring is a line,
// which carries data in one direction at a time, and the members of interleaved groups share its
// cables.
double rate_fraction(const cluster::Axis& axis, std::int32_t ranks, std::int32_t stride) {
  using enum cluster::Shape;
  if (ranks >= axis.size || axis.size < 2) return 1;
  switch (axis.link.shape) {
    case unstated:
    case switched: return 1;
    case full: return static_cast<double>(ranks - 1) / static_cast<double>(axis.size - 1);
    case ring:
    case mesh:
    case torus:
    case hybrid_cube_mesh:
    case mi250: return 0.5 / stride;
  }
  return 1;
}

std::string axis_names(const cluster::Cluster& cluster) {
  std::string names;
  for (const cluster::Axis& axis : cluster.axes)
    names += fmt::format("{}{}={}", names.empty() ? "" : ", ", axis.name, axis.size);
  return names;
}

Error not_an_axis(std::string_view mesh_axis, const cluster::Cluster& cluster) {
  const std::string& last = cluster.axes.back().name;
  return user_error(
      fmt::format("mesh axis {} is not an axis of cluster {}, or is out of order: {}", mesh_axis,
                  cluster.name, axis_names(cluster)),
      fmt::format("name mesh axes after the cluster's, outermost first: {0}, or its factors {0}_a, {0}_b",
                  last));
}

}  // namespace

const cluster::Axis* axis_under(const cluster::Cluster& cluster, std::string_view mesh_axis) {
  const auto found = std::ranges::find_if(
      cluster.axes, [&](const cluster::Axis& axis) { return is_factor_of(mesh_axis, axis.name); });
  return found == cluster.axes.end() ? nullptr : &*found;
}

bool is_local(const cluster::Cluster& cluster) {
  if (cluster.axes.empty() || cluster.axes.back().name != "rank") return false;
  const std::string& last = cluster.axes.back().link.name;
  if (cluster.axes.size() == 1) return last.empty() || last == kNetwork;
  return cluster.axes.size() == 2 && last.empty() && cluster.axes[0].link.name == kNetwork;
}

std::int64_t ranks_of_a_host(const cluster::Cluster& cluster) { return cluster.axes.back().size; }

Result<std::vector<MeshLink>> mesh_links(const cluster::Cluster& cluster, const plan::Mesh& mesh) {
  WEFT_TRY_STATUS(plan::check(mesh));
  std::vector<MeshLink> links;
  for (std::size_t c = 0; c < cluster.axes.size(); ++c) {
    const cluster::Axis& axis = cluster.axes[c];
    const std::size_t first = links.size();
    std::int64_t ranks = 1;
    while (links.size() < mesh.axes.size() && is_factor_of(mesh.axes[links.size()].name, axis.name)) {
      ranks *= mesh.axes[links.size()].ranks;
      links.push_back({.cluster_axis = c,
                       .link = axis.link.name,
                       .ranks = mesh.axes[links.size()].ranks,
                       .across_nodes = c + 1 < cluster.axes.size(),
                       .latency_seconds = axis.link.latency_seconds});
    }
    if (ranks != axis.size && links.size() < mesh.axes.size() &&
        axis_under(cluster, mesh.axes[links.size()].name) == nullptr)
      return not_an_axis(mesh.axes[links.size()].name, cluster);
    if (ranks != axis.size)
      return user_error(
          fmt::format("the mesh does not match the cluster: axis {} has {} ranks in the mesh, {} in {}",
                      axis.name, ranks, axis.size, cluster.name),
          fmt::format("the factors of {} must multiply to {}", axis.name, axis.size));
    std::int32_t stride = 1;
    for (auto next = links.rbegin(); next != links.rend() - static_cast<std::ptrdiff_t>(first); ++next) {
      MeshLink& link = *next;
      link.stride = stride;
      const double oversubscribed = std::max(1.0, axis.link.oversubscribed);
      link.bytes_per_second =
          axis.link.bytes_per_second * rate_fraction(axis, link.ranks, stride) / oversubscribed;
      if (link.across_nodes) {
        link.per_node =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(axis.per_node / stride, 1, link.ranks));
        link.within_bytes_per_second = cluster.axes[c + 1].link.bytes_per_second;
        link.collective_share = cluster::share_among(axis.link, link.ranks / link.per_node);
      }
      stride *= link.ranks;
    }
  }
  if (links.size() < mesh.axes.size()) return not_an_axis(mesh.axes[links.size()].name, cluster);
  return links;
}

}  // namespace weft::cost
