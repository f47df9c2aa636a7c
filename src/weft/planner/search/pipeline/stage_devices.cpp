#include "weft/planner/search/pipeline/stage_devices.h"

#include "weft/predict/cost/mesh_links.h"

namespace weft::search {

std::vector<cluster::Device> devices_of_stages(const cluster::Cluster& cluster,
                                               const distribute::Distribution& distribution) {
  const auto axis = distribute::stage_axis(distribution);
  return axis ? devices_along(cluster, distribution.mesh, *axis) : std::vector<cluster::Device>();
}

std::vector<cluster::Device> devices_along(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                                           std::size_t axis) {
  std::vector<cluster::Device> devices;
  if (!cluster.is_mixed()) return devices;
  const auto links = cost::mesh_links(cluster, mesh);
  if (!links.ok() || (*links)[axis].cluster_axis != 0) return devices;
  const cost::MeshLink& link = (*links)[axis];
  for (std::int32_t stage = 0; stage < link.ranks; ++stage) {
    std::vector<std::int64_t> nodes;
    for (std::int64_t node = 0; node < cluster.axes.front().size; ++node)
      if (node / link.stride % link.ranks == stage) nodes.push_back(node);
    devices.push_back(cluster::device_of_nodes(cluster, nodes));
  }
  return devices;
}

}  // namespace weft::search
