// weft/parallel/pipeline/prove_pipelined.h -- proves the plans of all ranks of a pipelined plan.
//
// The plans that unroll() makes for all ranks run over the field (interpret_ranks.h) and are
// compared with a single-device step of the whole batch: the losses on every rank, and each rank's
// shard of the next value of every parameter and state that it holds. A gradient counted twice or
// never, a missing message or a misordered pass shows up as another number or as a deadlock. Values
// are drawn until all decisions are covered (distribute/choices.h).
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

// `ranks`: the plan of each rank. Fails if they cannot be run: too large, or with empty shards.
Result<distribute::PlanProof> prove_ranks(const plan::Graph& original,
                                          const distribute::DistributedPlan& plan,
                                          std::span<const plan::Graph* const> ranks, std::uint64_t seed);

// For the plans that unroll() makes. REQUIRES: plan.time is set, and the plan was made from
// `original`.
Result<distribute::PlanProof> prove_pipelined(const plan::Graph& original,
                                              const distribute::DistributedPlan& plan,
                                              std::uint64_t seed = 1);

}  // namespace weft::pipeline
