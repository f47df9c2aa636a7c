// weft/parallel/distribute/holdings.h -- the plan being made: each value of the one-device plan in the layouts that it
// is held in so far.
//
//   h   partial(sum) on gpu     as its node gave it
//       sliced(s) on gpu        brought there for the norm: a reduce-scatter
//       replicated              brought there for a product: an all-gather of the second
//
// A value is brought to a layout once, from whichever it is held in that is nearest by price.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/convert.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

class Holdings {
 public:
  // REQUIRES: all three outlive it; `plan.graph` has the symbols and scopes of `graph` under
  // the same numbers.
  Holdings(const plan::Graph& graph, DistributedPlan& plan, const DistributeOptions& options);

  // `made` is what the node that makes `value` gives, in this layout.
  void hold(plan::ValueId value, plan::ValueId made, plan::Layout layout);

  // As its node gave it.
  const plan::Layout& given(plan::ValueId value) const {
    return plan_.layouts[versions_[value.value].front().value.value];
  }

  // The value in that layout, for the reader `origin`; what it takes is added as moved for it, in its phase.
  Result<plan::ValueId> bring(plan::ValueId value, const plan::Layout& layout, plan::NodeId origin);

 private:
  struct Version {
    plan::ValueId value;
    bool gathered = false;  // made by joining slices that are still there
  };

  bool is_kept_for(const Version& version, plan::Phase phase) const {
    return !(gather_again_ && version.gathered && phase_of(version) < phase);
  }
  plan::Phase phase_of(const Version& version) const {
    return plan_.graph.phase(plan_.graph.value(version.value).producer);
  }

  const plan::Graph& graph_;
  DistributedPlan& plan_;
  bool gather_again_;
  Converter converter_;
  std::vector<std::vector<Version>> versions_;  // by value of `graph`; the first is what its node gave
};

}  // namespace weft::distribute
