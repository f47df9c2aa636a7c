// weft/planner/search/distribution/plan_lower_bounds.h -- lower bounds for a distributed plan.
//
//   computation      arithmetic of products and convolutions, divided by the ranks of the axes that slice
//                    them, at a device's peak rate, or their memory traffic; plus launches; plus the memory
//                    traffic of optimizers
//   communication    per axis, the time of its collectives alone; mesh axes that are factors of one
//                    cluster axis share its links
//   critical path    of dependent products and collectives, with a launch for computation between them
//   memory           persistent tensors, and results of forward products that the backward pass reads
//
// Computation is one stream, and so is each axis. The busiest stream and the critical path are
// lower bounds on the step time. If a better plan is known, the search skips the simulation.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

// Peak performance of a machine.
struct PeakRates {
  const cost::StepCosts* costs = nullptr;  // of collectives; null: ignores communication
  // Flops per second of a device, a multiply-add being two; null: ignores computation.
  std::function<double(plan::DType)> rate = {};
  double launch_seconds = 0;
  double convolution_rate = 1;  // share of `rate` that convolutions reach
  double bytes_per_second = 0;  // of a device's memory; 0: ignores memory traffic
};

struct Least {
  double seconds = 0, bytes = 0;  // per step; peak per rank
};

// `counts`: by node, whether it contributes to the bounds; empty: all do.
Least plan_lower_bounds(const distribute::DistributedPlan& plan, const PeakRates& machine,
                        const std::vector<bool>& counts = {});

}  // namespace weft::search
