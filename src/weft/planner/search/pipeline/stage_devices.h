// weft/planner/search/pipeline/stage_devices.h -- the devices of each stage in a mixed cluster.
//
//   nodes   v100 v100 a100      node=3: stage     stage 0: v100, stage 1: v100, stage 2: a100
//
// A stage on nodes of several kinds is as fast as its slowest and has the memory of its smallest.
#pragma once
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::search {

// One device per position along a mesh axis; empty if all are the same.
std::vector<cluster::Device> devices_along(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                                           std::size_t axis);

// One device per stage. Empty if all stages have the same: in a cluster that is not mixed, or if
// every stage has ranks in every node.
std::vector<cluster::Device> devices_of_stages(const cluster::Cluster& cluster,
                                               const distribute::Distribution& distribution);

}  // namespace weft::search
