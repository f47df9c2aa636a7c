// weft/parallel/distribute/requirements.h -- requirements on a plan besides its values.
//
//   parameter w  sliced(f) on gpu     next w  sliced(f) on gpu      or the next step reads another shard
//   loss         replicated           not partial(sum) on gpu       the caller reads it from one rank
//   w            init=normal, b=0.02  as in the single-device plan  or training starts elsewhere
//   x            replicated, sliced   not partial, not varying      an input is never a partial sum
//   any value    f32                  not bf16                      it rounds, unless it is in the original;
//                                     f64                           wider types round less: allowed
//   any node     reads from its own phase or an earlier one, or ranks reject the plan
//   a gradient   every=8              the same period for all       periodic_sums.h
//
// Values alone do not show these: partial sums add up to the loss, and a proof fills w with random
// values.
#pragma once
#include <optional>
#include <string>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct BrokenRequirement {
  plan::NodeId node;  // of the distributed plan
  std::string what;   // "output loss is partial(sum) on gpu: it must be replicated .."
};

// REQUIRES: plan.layouts are up to date.
std::optional<BrokenRequirement> find_broken_requirement(const plan::Graph& original,
                                                         const DistributedPlan& plan);

}  // namespace weft::distribute
