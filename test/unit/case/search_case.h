// test/unit/case/search_case.h -- a fictional GPU, and what a search must know of a cluster of
// them.
#pragma once
#include <vector>

#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

inline cluster::Device some_gpu(double flops) {
  cluster::Device device;
  device.name = "gpu";
  device.flops_per_second.fill(flops);
  device.memory_bytes = 80e9;
  device.memory_bytes_per_second = 2e12;
  device.launch_seconds = 4e-6;
  return device;
}

// Uses given figures only. Without a peak rate, the search rules out nothing. REQUIRES: the cluster
// outlives it.
inline Machine machine_by_figures(const cluster::Cluster& on) {
  Machine made;
  made.costs = [&on](const plan::Mesh& mesh) { return cost::step_costs(on, mesh); };
  made.prices = [&on](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(links, cost::mesh_links(on, mesh));
    std::vector<distribute::AxisCost> prices;
    for (const cost::MeshLink& link : links) prices.push_back({link.latency_seconds, link.bytes_per_second});
    return prices;
  };
  return made;
}

// The same with a peak rate, so that the search can rule out plans by a lower bound.
inline Machine machine_with_peak(const cluster::Cluster& on) {
  Machine made = machine_by_figures(on);
  made.peak = [&on](plan::DType dtype) { return cost::peak_rate(on.device, dtype); };
  made.launch_seconds = on.device.launch_seconds;
  return made;
}

}  // namespace weft::search
