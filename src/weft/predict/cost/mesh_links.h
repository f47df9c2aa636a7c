// weft/predict/cost/mesh_links.h -- which wires the collectives along each mesh axis pass.
//
//   cluster node=4 (ib), gpu=8 (NVLink)      mesh node=4, gpu_a=2, gpu_b=4
//
//   axis    on     ranks  stride      gpu_a joins devices 0 and 4 of a node, gpu_b 0, 1, 2, 3; both pass
//   node    node   4      1           the same ports, so collectives along the two slow each other down.
//   gpu_a   gpu    2      4           Along `node` the eight devices of a node act at once, each through a
//   gpu_b   gpu    4      1           network card of its own.
//
// A mesh axis is a cluster axis, or a factor of one: then it bears the cluster axis' name, an underscore and
// anything. Axes come in the cluster's order, outermost first, so that rank r is device r.
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
  std::string link = {};        // its name; empty where the cluster names none
  std::int32_t ranks = 1;       // along the mesh axis
  std::int32_t stride = 1;      // from one of them to the next, in steps of the cluster axis
  bool across_nodes = false;    // through network cards rather than a node's own wires
  double latency_seconds = 0;   // of one message
  double bytes_per_second = 0;  // each way, per rank, when only this mesh axis uses the link; 0: not stated
};

// One for each axis of the mesh. Fails where the mesh is not the cluster: another number of ranks, another
// order, a name that is no axis. A cluster axis of one device may go unsaid.
Result<std::vector<MeshLink>> mesh_links(const cluster::Cluster& cluster, const plan::Mesh& mesh);

// The cluster axis that a mesh axis is, or is a factor of; null where there is none.
const cluster::Axis* axis_under(const cluster::Cluster& cluster, std::string_view mesh_axis);

// The link between the hosts of a job.
inline constexpr std::string_view kNetwork = "network";

// A cluster of processors like this machine's. Its last axis is `rank`, which has no link:
//
//   LOCAL 4                          rank=4
//   JOB, 2 hosts of 3 ranks          host=2 (network), rank=3
//   JOB, hosts of 3 and 2 ranks      rank=5 (network): any two might be on different ones
bool is_local(const cluster::Cluster& cluster);

// Of such a cluster, ranks that share the processors of one host.
std::int64_t ranks_of_a_host(const cluster::Cluster& cluster);

}  // namespace weft::cost
