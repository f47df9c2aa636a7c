// weft/parallel/partition/steady.h -- replicated stages for asynchronous pipelines.
//
// The machines of a level share links of one bandwidth. One machine of a level consists of all
// machines of the level below: 2 servers of 4 GPUs are {4, 10 GB/s}, {2, 1 GB/s}. A mini-batch
// takes as long as the slowest of
//
//   a stage on m machines      (compute + 4 (m-1) P / (bandwidth m)) / m      P: its parameters, in bytes
//   the data entering it       2 activations / (bandwidth m)
//   the data leaving it        the same, except at the end of the model
//
// Above the first level, compute is the time that the levels below need. This is the model of
// PipeDream's optimizer (Narayanan et al., SOSP 2019), including its conventions: all machines are
// used, and the first stage of a level spreads its gradients over as many links as a machine of the
// level below has machines.
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
  std::vector<std::int32_t> nodes;  // positions in Profile::nodes, ascending
  std::int32_t replicas = 1;        // machines of its level
  std::vector<SteadyStage> inner;   // its split over the level below; empty at the first level
};

struct SteadyAnswer {
  std::vector<SteadyStage> stages;  // of the highest level
  double cost = 0;                  // seconds per mini-batch
  std::int32_t ideals = 0;
  bool exact = true;  // false: too many ideals, so only partitions along one order were searched
};

// Levels from innermost to outermost. Fails on a cycle.
Result<SteadyAnswer> cut_steady(const Profile& profile, const std::vector<Level>& levels,
                                bool straight = false);

// The cost of these stages by definition; fails if they are invalid. Shares no code with
// cut_steady().
Result<double> judge(const Profile& profile, const std::vector<Level>& levels,
                     const std::vector<SteadyStage>& stages);

}  // namespace weft::partition
