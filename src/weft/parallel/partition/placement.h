// weft/parallel/partition/placement.h -- where to cut a graph of operators for a few accelerators and CPUs.
//
// In the steady state of a pipeline a sample takes as long as the busiest device needs for its part:
//
//   load of an accelerator = the times of its nodes + the costs of what it receives and sends, a source once
//   load of a CPU          = the times of its nodes: it is where the transfers go to
//
// Nodes of one class lie on one device; backward nodes follow the forward nodes of their class. What a device
// holds is contiguous: no path of forward nodes leaves it and returns. The model of Tarnawski et al., "Efficient
// Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::partition {

struct PlacementNode {
  std::int64_t id = 0;                    // as the file has it
  double on_accelerator = 0, on_cpu = 0;  // the unit of the answer
  double bytes = 0;
  double send = 0;            // to move its output between an accelerator and the host
  std::int32_t class_of = 0;  // nodes of one class lie together; in [0, nodes)
  bool backward = false;
  bool accelerated = true;  // whether an accelerator can run it
};

struct Placement {
  std::vector<PlacementNode> nodes;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // places in `nodes`
  std::int32_t accelerators = 1, cpus = 0;
  double memory = 0;  // bytes of an accelerator
};

struct PlacementStage {
  std::vector<std::int32_t> nodes;  // places in Placement::nodes, ascending
  bool cpu = false;
  double load = 0;
};

struct PlacementAnswer {
  std::vector<PlacementStage> stages;  // in an order in which forward edges go forward
  double cost = 0;                     // the greatest load
  std::int32_t ideals = 0;
  bool exact = true;  // false: too many ideals, so only splits along one order of the nodes were weighed
};

// A split of the least cost. Fails on a cycle, and where the nodes fit on no devices.
Result<PlacementAnswer> place(Placement placement);

// The cost of a split, from its definition; fails on a split that is none. Shares no code with place().
Result<double> judge(const Placement& placement, const std::vector<PlacementStage>& stages);

}  // namespace weft::partition
