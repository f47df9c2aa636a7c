// weft/predict/sim/collective/collective_cluster.h -- the wires a collective is priced on, and the sizes it is priced at.
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
  std::int32_t local = 1;           // devices of a node
  std::vector<std::int64_t> sides;  // of a torus or mesh
};

// The wires of a cluster as the catalog has it.
Result<CollectiveCluster> wires_of(const cluster::Cluster& cluster);

// How many threadblocks of a device fill its link.
std::int32_t threadblocks_for(double bytes_per_second);

// How many fill all links out of a device: the channels that such a machine runs an algorithm with.
std::int32_t channels_of(const CollectiveCluster& cluster);

// Gives the parameters that a cluster decides and nobody has given: ranks, local, rows and columns; and
// channels, where a single instance is to fill the links.
void fill_parameters(const collective::Algorithm& algorithm, const CollectiveCluster& cluster,
                     std::int32_t instances, collective::Arguments& arguments);

// "1KiB..1GiB", "1MiB"; powers of two between. Nothing given: 1 KiB to 1 GiB.
Result<std::vector<std::int64_t>> parse_sizes(std::string_view text);

}  // namespace weft::sim
