// weft/planner/target/slowness.h -- how much slower steps run than planned.
//
//   planned      computes 1.0 ms    along host 2.0 ms    along rank 0.3 ms
//   measured              1.1 ms               9.8 ms               0.3 ms     a slow network
//   slowness              1.1                  4.9                  1.0
#pragma once
#include <vector>

#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::planner {

// Measured over planned time; 1 is as planned.
struct Slowness {
  double compute = 1;         // of the slowest rank, since shares are equal and a step waits for all
  std::vector<double> links;  // by cluster axis; empty: as planned

  double link(std::size_t cluster_axis) const {
    return cluster_axis < links.size() ? links[cluster_axis] : 1;
  }
};

// The machine with all costs scaled by the slowness. REQUIRES: the cluster outlives it.
search::Machine slowed(search::Machine machine, const cluster::Cluster& cluster, const Slowness& slowness);

// Whether one of the factors changed by half or more.
bool differs(const Slowness& now, const Slowness& before);

}  // namespace weft::planner
