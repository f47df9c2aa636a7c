// weft/planner/search/distribution/meshes.h -- the meshes that a cluster can be seen as.
//
//   4 nodes of 8 GPUs     node=4, gpu=8      node=4, gpu_a=2, gpu_b=4      node_a=2, node_b=2, gpu=8   ..
//
// An axis of the cluster stays whole or falls into two factors, outer and inner; the order of the cluster's
// axes stays, so rank r of every mesh is device r.
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
  std::vector<std::size_t> cluster_axis;  // by mesh axis: which of the cluster's it is a part of
};

// Whole axes first, then by how many fall apart. Axes of one device are left out, unless nothing else is
// there; axes named in `whole` stay so.
std::vector<MeshOption> meshes_of(const cluster::Cluster& cluster, std::span<const std::string> whole = {});

}  // namespace weft::search
