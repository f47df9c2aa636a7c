// weft/planner/search/pipeline/stage_devices.h -- which devices each stage has, in a cluster of several kinds.
//
//   nodes   v100 v100 a100      node=3: stage     stage 0: v100, stage 1: v100, stage 2: a100
//
// A stage on nodes of several kinds goes at the pace of the slowest, and holds what the smallest does.
#pragma once
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::search {

// One for each place along an axis of the mesh; nothing where all have the same.
std::vector<cluster::Device> devices_along(const cluster::Cluster& cluster, const plan::Mesh& mesh,
                                           std::size_t axis);

// One for each stage; nothing where all stages have the same: those of a cluster that is not mixed, and those whose
// ranks lie within every node.
std::vector<cluster::Device> devices_of_stages(const cluster::Cluster& cluster,
                                               const distribute::Distribution& distribution);

}  // namespace weft::search
