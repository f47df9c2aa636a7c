// weft/planner/search/distribution/least_of_plan.h -- what a distributed plan takes at least, without simulating it.
//
//   computing        each product's and convolution's arithmetic, divided by the ranks of the axes it is cut on,
//                    at the best rate of a device, or what it reads and writes, and its launch; what optimizers
//                    read and write
//   communicating    along each axis, what its collectives take alone; axes that are parts of one axis of the
//                    cluster share its wires
//   the longest way  of products and collectives that wait for one another, with a launch where something is
//                    computed between
//   memory           what is kept from step to step, and what products of the forward pass leave for the
//                    backward pass
//
// Computing is one stream, and so is each axis; whichever is busy longest is a floor, and so is the longest
// way. A search that knows a better plan need not look closer.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

// How quick a machine is at best.
struct Quickest {
  const cost::StepCosts* costs = nullptr;  // of collectives; null: communicating is not counted
  // Multiply-adds, each as two, that a device does in a second; null: computing is not counted.
  std::function<double(plan::DType)> rate = {};
  double launch_seconds = 0;
  double convolution_rate = 1;  // of `rate`, that convolutions reach
  double bytes_per_second = 0;  // of a device's memory; 0: what is read and written is not counted
};

struct Least {
  double seconds = 0, bytes = 0;  // of a step; of a rank at its fullest
};

// Nodes that `counts` says no to take nothing and keep nothing; empty: all count.
Least least_of_plan(const distribute::DistributedPlan& plan, const Quickest& machine,
                    const std::vector<bool>& counts = {});

}  // namespace weft::search
