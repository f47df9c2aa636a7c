#include "weft/parallel/distribute/edit_plan.h"

#include <fmt/format.h>

#include "weft/plan/graph/settle_phases.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::distribute {

using plan::NodeId;
using plan::ValueId;

PlanEdit::PlanEdit(const DistributedPlan& plan)
    : plan_(plan), moved_(plan.graph, made_.graph), values_(plan.graph.value_count()) {
  made_.mesh = plan.mesh;
  made_.opened = plan.opened;
  if (plan.time) made_.time = PipelineInfo{plan.time->distribution, {}};
  made_.graph.name = plan.graph.name;
  for (std::size_t s = 0; s < plan.graph.scope_count(); ++s) {
    plan::Scope scope = plan.graph.scope(plan::ScopeId(s));
    if (scope.parent.valid()) scope.parent = scopes_[scope.parent.value];
    if (scope.name.valid()) scope.name = moved_.symbol(scope.name);
    scopes_.push_back(made_.graph.add_scope(scope));
  }
}

void PlanEdit::adopt_context(NodeId node) {
  note_new();
  const plan::Node& old = plan_.graph.node(node);
  made_.graph.set_label(old.label.valid() ? moved_.symbol(old.label) : Symbol());
  made_.graph.set_scope(old.scope.valid() ? scopes_[old.scope.value] : plan::ScopeId());
  made_.graph.set_when(old.when);
  if (plan_.time) place_ = plan_.time->position[node.value];
}

void PlanEdit::note_new() {
  made_.origin.resize(made_.graph.node_count());
  made_.own.resize(made_.graph.node_count(), true);
  if (!made_.time) return;
  // A source is placed wherever it is read.
  std::vector<std::int32_t>& places = made_.time->position;
  for (std::size_t n = places.size(); n < made_.graph.node_count(); ++n)
    places.push_back(ops::is_source(*made_.graph.node(NodeId(n)).op) ? -1 : place_);
}

Status PlanEdit::keep(NodeId node) {
  std::vector<ValueId> inputs;
  for (const ValueId input : plan_.graph.node(node).inputs) inputs.push_back(now(input));
  return keep(node, inputs);
}

Status PlanEdit::keep(NodeId node, std::span<const ValueId> inputs) {
  adopt_context(node);
  const plan::Node& old = plan_.graph.node(node);
  for (const ValueId input : inputs)
    if (!input.valid())
      return user_error(
          fmt::format("node {}: it reads a value that was removed", describe(plan_.graph, node)));
  WEFT_TRY(added, moved_.node(node, inputs));
  made_.origin.push_back(plan_.origin[node.value]);
  made_.own.push_back(plan_.is_own(node));
  if (made_.time) made_.time->position.push_back(place_);
  for (std::size_t k = 0; k < old.result_count; ++k)
    become(plan_.graph.result(node, k), made_.graph.result(added, k));
  return {};
}

Result<DistributedPlan> PlanEdit::finish() {
  note_new();
  for (const plan::Output& output : plan_.graph.outputs())
    if (now(output.value).valid()) moved_.output(output, now(output.value));
  WEFT_TRY_STATUS(plan::settle_phases(made_.graph));
  WEFT_TRY(layouts, spmd::infer_layouts(made_.graph, made_.mesh));
  made_.layouts = std::move(layouts);
  return std::move(made_);
}

}  // namespace weft::distribute
