// weft/parallel/pipeline/unroll.h -- the plain plan that one rank of a pipelined plan runs.
//
//   stage 0 of 2, micro=2, gpipe                          turn
//   %4 = slice %0 {along=b, begin=0, end=4}               0    F0
//   %5 = contract %4, %1 ..                               0
//        exchange %5 {kind=send, axis=stage, by=1, ..}    0
//   ...                                                   1    F1
//   %9 = exchange {kind=receive, axis=stage, by=1, ..}    2    BW0
//   ...
//   %20 = add %12, %19                                    3    BW1: gradients accumulate, at least in f32
//   %21 = adam %1, %20, ..                                4    the update
//
// For each pass of the stage's order, the nodes of that micro-batch, position and pass are copied.
// Values that another stage makes or reads are received or sent, with unique tags. Sums over
// micro-batches accumulate on every stage that contributes and are then sent to the stage that owns
// them. That stage updates parameters once and sends the next values to all stages that hold them.
// Scalar outputs of a step, such as the losses, are available on every rank.
//
// A rank exchanges data with the ranks at its own coordinates in the other stages, so both have the
// same shards.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/train/passes.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

struct Unrolled {
  plan::Graph graph;
  std::vector<std::uint32_t> turns;  // by node
  std::vector<Pass> passes;          // by turn; later turns belong to the update and have none
  std::vector<train::Pass> work;     // by node: the pass of its micro-batch, or update
};

// REQUIRES: plan.time is set. `rank`: of its whole mesh.
Result<Unrolled> unroll(const distribute::DistributedPlan& plan, std::int32_t rank);

// By node of the plan: the stages that hold a source, as a bit set; 0 for other nodes.
Result<std::vector<std::uint64_t>> stages_of_sources(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
