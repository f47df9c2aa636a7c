// weft/app/session/find_cluster.h -- the cluster that a command line names.
//
//   pod        a cluster that ships
//   my.weft    a script with CREATE CLUSTER; the last one counts
//   LOCAL 4    ranks of this machine
//
// and where collectives are priced also
//
//   taccl_topo-ndv2.json a topology of TACCL's or SCCL's kind
//   topo.xml             what NCCL_TOPO_DUMP_FILE writes
//   topo.txt             what `nvidia-smi topo -m` prints
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

// LOCAL 4 as well.
Result<cluster::Cluster> find_cluster(const std::string& reference);

Result<cluster::Cluster> local_cluster(std::int64_t ranks);

Result<sim::CollectiveCluster> find_collective_cluster(const std::string& reference);

}  // namespace weft::session
