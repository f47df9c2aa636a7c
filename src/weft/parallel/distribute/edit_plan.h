// weft/parallel/distribute/edit_plan.h -- copies a plan node by node, replacing some.
//
//   PlanEdit edit(plan);
//   for each node n:   edit.keep(n), or:   edit.adopt_context(n);
//                                          add nodes to edit.graph() over edit.now(operand);
//                                          edit.become(its result, the replacement);
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

  // Copies the node, over the copies of its operands or over these inputs.
  Status keep(plan::NodeId node);
  Status keep(plan::NodeId node, std::span<const plan::ValueId> inputs);
  // Adds the same operator again over these values of graph(); it counts as one of the plan's own
  // nodes. `last`: as in plan::Transplant.
  Result<plan::NodeId> add_again(plan::NodeId node, std::span<const plan::ValueId> inputs,
                                 const plan::AttributeValue* last = nullptr) {
    return moved_.node(node, inputs, last);
  }
  // Nodes added from here on get this node's label, scope, phase and position, and count as the
  // plan's own.
  void adopt_context(plan::NodeId node);
  plan::ValueId now(plan::ValueId value) const { return values_[value.value]; }
  void become(plan::ValueId value, plan::ValueId now) { values_[value.value] = now; }

  // Drops outputs whose values have no replacement. Fails if layouts do not match.
  Result<DistributedPlan> finish();

 private:
  void note_new();

  const DistributedPlan& plan_;
  DistributedPlan made_;
  plan::Transplant moved_;
  std::vector<plan::ScopeId> scopes_;
  std::vector<plan::ValueId> values_;
  std::int32_t place_ = -1;  // of added nodes
};

}  // namespace weft::distribute
