// weft/parallel/partition/placement.h -- partitions an operator graph over accelerators and CPUs.
//
// In the steady state of a pipeline, a sample takes as long as the busiest device needs for its
// share:
//
//   load of an accelerator = the times of its nodes and its transfers, each source once
//   load of a CPU          = the times of its nodes: transfers go to host memory
//
// Nodes of one class share a device; backward nodes follow the forward nodes of their class. The
// nodes of a device are contiguous: no path of forward nodes leaves the device and returns. The
// model of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators",
// NeurIPS 2020.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::partition {

struct PlacementNode {
  std::int64_t id = 0;                    // as in the file
  double on_accelerator = 0, on_cpu = 0;  // in the unit of the answer
  double bytes = 0;
  double send = 0;            // cost to move its output between an accelerator and the host
  std::int32_t class_of = 0;  // nodes of one class share a device; in [0, nodes)
  bool backward = false;
  bool accelerated = true;  // whether an accelerator can run it
};

struct Placement {
  std::vector<PlacementNode> nodes;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // positions in `nodes`
  std::int32_t accelerators = 1, cpus = 0;
  double memory = 0;  // bytes per accelerator
};

struct PlacementStage {
  std::vector<std::int32_t> nodes;  // positions in Placement::nodes, ascending
  bool cpu = false;
  double load = 0;
};

struct PlacementAnswer {
  std::vector<PlacementStage> stages;  // in an order in which forward edges go forward
  double cost = 0;                     // the largest load
  std::int32_t ideals = 0;
  bool exact = true;  // false: too many ideals, so only partitions along one order were searched
};

// A partition of least cost. Fails on a cycle, and if the nodes do not fit on the devices.
Result<PlacementAnswer> place(Placement placement);

// The cost of a partition by definition; fails if it is invalid. Shares no code with place().
Result<double> judge(const Placement& placement, const std::vector<PlacementStage>& stages);

}  // namespace weft::partition
