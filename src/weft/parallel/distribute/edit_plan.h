// weft/parallel/distribute/edit_plan.h -- a distributed plan made anew, node by node, with some nodes written otherwise.
//
//   PlanEdit edit(plan);
//   for each node n:   edit.keep(n), or:   edit.stand_at(n);
//                                          add nodes to edit.graph() over edit.now(operand);
//                                          edit.become(its result, what stands for it);
//   edit.finish()
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/transplant.h"

namespace weft::distribute {

class PlanEdit {
 public:
  // REQUIRES: `plan` outlives it.
  explicit PlanEdit(const DistributedPlan& plan);

  plan::Graph& graph() { return made_.graph; }
  Symbol symbol(Symbol symbol) { return moved_.symbol(symbol); }

  // As it is, over what its operands became, or over these.
  Status keep(plan::NodeId node);
  Status keep(plan::NodeId node, std::span<const plan::ValueId> inputs);
  // The same operator once more, over these values of graph(), as one of the plan's own; `last` as in
  // plan::Transplant.
  Result<plan::NodeId> add_again(plan::NodeId node, std::span<const plan::ValueId> inputs,
                                 const plan::AttributeValue* last = nullptr) {
    return moved_.node(node, inputs, last);
  }
  // Nodes that are added from here on are of this one's label, scope, phase and place in time, and the plan's own.
  void stand_at(plan::NodeId node);
  plan::ValueId now(plan::ValueId value) const { return values_[value.value]; }
  void become(plan::ValueId value, plan::ValueId now) { values_[value.value] = now; }

  // Without outputs whose values became nothing. Fails where layouts do not go together.
  Result<DistributedPlan> finish();

 private:
  void note_new();

  const DistributedPlan& plan_;
  DistributedPlan made_;
  plan::Transplant moved_;
  std::vector<plan::ScopeId> scopes_;
  std::vector<plan::ValueId> values_;
  std::int32_t place_ = -1;  // of nodes that are added
};

}  // namespace weft::distribute
