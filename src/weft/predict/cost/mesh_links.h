// weft/predict/cost/mesh_links.h -- which links the collectives along each mesh axis use.
//
//   cluster node=4 (ib), gpu=8 (NVLink)      mesh node=4, gpu_a=2, gpu_b=4
//
//   axis    on     ranks  stride      gpu_a joins devices 0 and 4 of a node, gpu_b 0, 1, 2, 3; both use
//   node    node   4      1           the same ports, so collectives along the two slow each other down.
//   gpu_a   gpu    2      4           Along `node` the eight devices of a node communicate at once, each
//   gpu_b   gpu    4      1           through its own network card.
//
// A mesh axis is a cluster axis or a factor of one. A factor is named after the cluster axis,
// followed by an underscore and any suffix. Axes come in the cluster's order, outermost first, so
// that rank r is device r.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/layout.h"

namespace weft::cost {

struct MeshLink {
  std::size_t cluster_axis = 0;
  std::string link = {};        // its name; empty if the cluster does not name it
  std::int32_t ranks = 1;       // along the mesh axis
  std::int32_t stride = 1;      // between consecutive members, in steps of the cluster axis
  bool across_nodes = false;    // through network cards instead of intra-node links
  double latency_seconds = 0;   // per message
  double bytes_per_second = 0;  // per rank and direction, if not shared by other mesh axes; 0: not stated
  double collective_share = 1;  // of that rate, which collectives among so many nodes reach
  // Members that share a node, and their rate to each other: of a group that takes several devices of each node.
  std::int32_t per_node = 1;
  double within_bytes_per_second = 0;
};

// One link per mesh axis. Fails if the mesh does not match the cluster in number of ranks, axis
// order or axis names. A cluster axis of one device may be left out.
Result<std::vector<MeshLink>> mesh_links(const cluster::Cluster& cluster, const plan::Mesh& mesh);

// The cluster axis that a mesh axis equals or is a factor of; null if there is none.
const cluster::Axis* axis_under(const cluster::Cluster& cluster, std::string_view mesh_axis);

// The link between the hosts of a job.
inline constexpr std::string_view kNetwork = "network";

// True for a cluster of processors like this machine's. Its last axis is `rank`, which has no link:
//
//   LOCAL 4                          rank=4
//   JOB, 2 hosts of 3 ranks          host=2 (network), rank=3
//   JOB, hosts of 3 and 2 ranks      rank=5 (network): any two might be on different hosts
bool is_local(const cluster::Cluster& cluster);

// For such a cluster: the number of ranks that share the processors of one host.
std::int64_t ranks_of_a_host(const cluster::Cluster& cluster);

}  // namespace weft::cost
