// weft/parallel/pipeline/prove_in_time.h -- whether what the ranks of a plan in time run is the step of one device.
//
// The plans that unroll() makes, of every rank, are run over the field (interpret_ranks.h) and compared with one
// device's step of the whole batch: the losses on every rank, and each rank's share of the next value of every
// parameter and state that it holds. A gradient that is counted twice or not at all, a message that is missing, a
// pass out of order shows as another number, or as ranks that wait. Numbers are drawn
// until all choices were seen (distribute/choices.h).
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

// `ranks`: what they run, by rank. Fails where it cannot be run at all: too large, empty shares.
Result<distribute::PlanProof> prove_ranks(const plan::Graph& original,
                                          const distribute::DistributedPlan& plan,
                                          std::span<const plan::Graph* const> ranks, std::uint64_t seed);

// Of what unroll() makes. REQUIRES: the plan is in time, and was made of `original`.
Result<distribute::PlanProof> prove_in_time(const plan::Graph& original,
                                            const distribute::DistributedPlan& plan, std::uint64_t seed = 1);

}  // namespace weft::pipeline
