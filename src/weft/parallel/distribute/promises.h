// weft/parallel/distribute/promises.h -- what a distributed plan must keep besides its values.
//
//   parameter w  sliced(f) on gpu     next w  sliced(f) on gpu      else the next step reads another share
//   loss         replicated           not partial(sum) on gpu       a caller reads what one rank holds
//   w            init=normal, b=0.02  as in the plan of one device  else it learns from elsewhere
//   x            replicated, sliced   not partial, not varying      what is fed is no rank's addend
//   any value    f32                  not bf16                      where one device has none, it would round;
//                                     f64                           more bits round less, and may be
//   any node     reads from its own phase or an earlier one, or ranks refuse the plan
//   a gradient   every=8              as all others are             excuses.h
//
// Values alone do not show these: ranks' addends add up to the loss, and a proof draws what w holds at random.
#pragma once
#include <optional>
#include <string>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct BrokenPromise {
  plan::NodeId node;  // of the distributed plan
  std::string what;   // "output loss is partial(sum) on gpu: it must be whole"
};

// REQUIRES: plan.layouts are those of its values.
std::optional<BrokenPromise> find_broken_promise(const plan::Graph& original, const DistributedPlan& plan);

}  // namespace weft::distribute
