// weft/parallel/distribute/holdings.h -- the layouts in which each value is already held.
//
//   h   partial(sum) on gpu     from its node
//       sliced(s) on gpu        converted for the norm: a reduce-scatter
//       replicated              converted for a product: an all-gather of the second
//
// A value is converted to a layout once, from the cheapest layout that it is already held in.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/convert.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

class Holdings {
 public:
  // REQUIRES: all three outlive it; `plan.graph` has the symbols and scopes of `graph` under the
  // same ids.
  Holdings(const plan::Graph& graph, DistributedPlan& plan, const DistributeOptions& options);

  // Records that the node of `value` makes `made`, in this layout.
  void hold(plan::ValueId value, plan::ValueId made, plan::Layout layout);

  // The layout in which its node makes it.
  const plan::Layout& given(plan::ValueId value) const {
    return plan_.layouts[versions_[value.value].front().value.value];
  }

  // The value in that layout, for the reader `origin`. Adds the necessary communication in the
  // reader's phase.
  Result<plan::ValueId> bring(plan::ValueId value, const plan::Layout& layout, plan::NodeId origin);

 private:
  struct Version {
    plan::ValueId value;
    bool gathered = false;  // joined from slices that are still held
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
  std::vector<std::vector<Version>> versions_;  // by value of `graph`; the first comes from its node
};

}  // namespace weft::distribute
