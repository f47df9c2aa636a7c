// weft/parallel/partition/steady.h -- stages with replicas for the steady state of an asynchronous pipeline.
//
// The machines of a level share links of one bandwidth; a machine of a level is all machines of the level below:
// 2 servers of 4 GPUs are {4, 10 GB/s}, {2, 1 GB/s}. A mini-batch takes as long as the slowest of
//
//   a stage on m machines      (compute + 4 (m-1) P / (bandwidth m)) / m      P: its parameters, in bytes
//   what crosses into it       2 activations / (bandwidth m)
//   what crosses out of it     the same, unless it is the end of the model
//
// where compute is, above the first level, what the levels below need. That is the model of PipeDream's optimizer
// (Narayanan et al., SOSP 2019), with its ways: all machines are used, and the first stage of a level shares its
// gradients over as many links as a machine of the level below has machines.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/partition/profile.h"

namespace weft::partition {

struct Level {
  std::int32_t machines = 1;
  double bandwidth = 0;  // bytes/s
};

struct SteadyStage {
  std::vector<std::int32_t> nodes;  // places in Profile::nodes, ascending
  std::int32_t replicas = 1;        // machines of its level
  std::vector<SteadyStage> inner;   // how the machines of the level below share it; empty in the first
};

struct SteadyAnswer {
  std::vector<SteadyStage> stages;  // of the highest level
  double cost = 0;                  // seconds of a mini-batch
  std::int32_t ideals = 0;
  bool exact = true;  // false: too many ideals, so only splits along one order of the nodes were weighed
};

// Levels from the innermost to the outermost. Fails on a cycle.
Result<SteadyAnswer> cut_steady(const Profile& profile, const std::vector<Level>& levels,
                                bool straight = false);

// The cost of such stages, from the definition; fails on stages that are none. Shares no code with cut_steady().
Result<double> judge(const Profile& profile, const std::vector<Level>& levels,
                     const std::vector<SteadyStage>& stages);

}  // namespace weft::partition
