// weft/predict/sim/collective/collective_cluster.h -- topology and sizes for collective costs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/plan/cluster/topology.h"

namespace weft::sim {

struct CollectiveCluster {
  cluster::Topology topology;
  std::int32_t local = 1;           // devices per node
  std::vector<std::int64_t> sides;  // of a torus or mesh
};

// The topology of a cluster from the catalog.
Result<CollectiveCluster> wires_of(const cluster::Cluster& cluster);

// How many threadblocks of a device saturate its link.
std::int32_t threadblocks_for(double bytes_per_second);

// How many threadblocks saturate all links out of a device: the number of channels on such a
// machine.
std::int32_t channels_of(const CollectiveCluster& cluster);

// Sets the parameters that follow from the cluster, unless they are given: ranks, local, rows and
// columns. Sets channels too if a single instance must saturate the links.
void fill_parameters(const collective::Algorithm& algorithm, const CollectiveCluster& cluster,
                     std::int32_t instances, collective::Arguments& arguments);

// "1KiB..1GiB", "1MiB"; powers of two between. An empty text means 1 KiB to 1 GiB.
Result<std::vector<std::int64_t>> parse_sizes(std::string_view text);

}  // namespace weft::sim
