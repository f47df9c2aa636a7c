// weft/planner/search/distribution/meshes.h -- the meshes of a cluster.
//
//   4 nodes of 8 GPUs     node=4, gpu=8      node=4, gpu_a=2, gpu_b=4      node_a=2, node_b=2, gpu=8   ..
//
// A cluster axis stays whole or is split into two factors, outer and inner. The order of the
// cluster's axes is kept, so rank r of every mesh is device r.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/layout.h"

namespace weft::search {

struct MeshOption {
  plan::Mesh mesh;
  std::vector<std::size_t> cluster_axis;  // by mesh axis: the cluster axis it belongs to
};

// Sorted by number of axes, unsplit first. Axes of one device are left out, unless there are no
// others. Axes named in `whole` are not split.
std::vector<MeshOption> meshes_of(const cluster::Cluster& cluster, std::span<const std::string> whole = {});

}  // namespace weft::search
