// weft/parallel/distribute/delayed.h -- gradients that are summed, and applied, a step after they were made.
//
//   %3 = state {name="w1.delayed.rank", type=f32[rank_addend=4,p=9], layout="sliced(rank_addend) on rank"}
//   %4 = reduce %3 {kind=sum, to=[p]}            what the ranks made in the step before
//   %5 = all-reduce %4 {axis=rank}               nothing of this step is waited for
//   ..
//   %9 = addends %8 {axis=rank, ..}              what this rank makes in this one
//   return .., "next w1.delayed.rank"=%9
//
// Such a state begins at zero, so the first step changes nothing. It is known by these nodes, whatever its name, and by
// the optimizer that reads it as a gradient: nothing else may come a step later.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

struct Delayed {
  std::string_view name;
  plan::NodeId state, reduce;
  plan::ValueId made;  // what the next step reduces, before it is stacked
};

std::vector<Delayed> find_delayed(const plan::Graph& graph);

// The plan in which what is made is summed at once: what it means but for the delay.
Result<DistributedPlan> without_delay(const DistributedPlan& plan);

}  // namespace weft::distribute
