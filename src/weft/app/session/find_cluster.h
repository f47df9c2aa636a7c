// weft/app/session/find_cluster.h -- the cluster named on a command line.
//
//   pod        a shipped cluster
//   my.weft    a script with CREATE CLUSTER; its last cluster is used
//   LOCAL 4    ranks of this machine
//
// For collectives also:
//
//   taccl_topo-ndv2.json a topology in the format of TACCL or SCCL
//   topo.xml             a file written by NCCL_TOPO_DUMP_FILE
//   topo.txt             the output of `nvidia-smi topo -m`
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::session {

// A name or a script.
Result<cluster::Cluster> find_described_cluster(const std::string& reference);

// A name, a script or LOCAL 4.
Result<cluster::Cluster> find_cluster(const std::string& reference);

Result<cluster::Cluster> local_cluster(std::int64_t ranks);

Result<sim::CollectiveCluster> find_collective_cluster(const std::string& reference);

}  // namespace weft::session
