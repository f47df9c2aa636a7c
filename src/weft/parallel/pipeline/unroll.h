// weft/parallel/pipeline/unroll.h -- what one rank of a plan in time runs in a step: one plain plan.
//
//   stage 0 of 2, micro=2, gpipe                          turn
//   %4 = slice %0 {along=b, begin=0, end=4}               0    F0
//   %5 = contract %4, %1 ..                               0
//        exchange %5 {kind=send, axis=stage, by=1, ..}    0
//   ...                                                   1    F1
//   %9 = exchange {kind=receive, axis=stage, by=1, ..}    2    BW0
//   ...
//   %20 = add %12, %19                                    3    BW1: gradients add up, in f32 at least
//   %21 = adam %1, %20, ..                                4    the update
//
// For each pass of the stage's order the nodes of that micro-batch, place and pass are made again; what another
// stage makes or reads is received or sent, tagged so that nothing can be taken for another. What is summed over
// micro-batches is added up as it comes, on every stage that has a share in it, and brought to the stage that
// owns it; that updates parameters once, and gives the next values to all stages that hold them. The numbers that
// a step gives, the losses first, are on every rank.
//
// A rank sends to and receives from the ranks of its own place in the other stages, so both have the same shares.
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
  std::vector<Pass> passes;          // by turn; those after them are of the update, and have none
  std::vector<train::Pass> work;     // by node: which pass of its micro-batch it belongs to, or the update
};

// REQUIRES: the plan is in time. `rank`: of its whole mesh.
Result<Unrolled> unroll(const distribute::DistributedPlan& plan, std::int32_t rank);

// Which stages hold a source: by node of the plan, a bit a stage; 0 for nodes that are none.
Result<std::vector<std::uint64_t>> stages_of_sources(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
