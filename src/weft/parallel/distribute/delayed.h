// weft/parallel/distribute/delayed.h -- gradients that are applied one step late.
//
//   %3 = state {name="w1.delayed.rank", type=f32[rank_addend=4,p=9], layout="sliced(rank_addend) on rank"}
//   %4 = reduce %3 {kind=sum, to=[p]}            the ranks' gradients of the previous step
//   %5 = all-reduce %4 {axis=rank}               waits for nothing of this step
//   ..
//   %9 = addends %8 {axis=rank, ..}              this rank's gradient of this step
//   return .., "next w1.delayed.rank"=%9
//
// Such a state starts at zero, so the first step changes nothing. It is recognized by these nodes,
// whatever its name, and by the optimizer that reads it as a gradient: nothing else may be delayed
// by a step.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

struct Delayed {
  std::string_view name;
  plan::NodeId state, reduce;
  plan::ValueId made;  // the value that the next step reduces, before it is stacked
};

std::vector<Delayed> find_delayed(const plan::Graph& graph);

// The plan that sums gradients in the step that computes them: what it means except for the delay.
Result<DistributedPlan> without_delay(const DistributedPlan& plan);

}  // namespace weft::distribute
