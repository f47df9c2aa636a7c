#include "weft/parallel/distribute/meaning.h"

#include <algorithm>
#include <vector>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Whether the node also occurs in the single-device plan, with the same operands.
bool is_as_modelled(const plan::Graph& open, const DistributedPlan& plan, const NodeView& node) {
  const NodeId origin = plan.origin[node.id().value];
  if (plan.is_own(node.id()) || !origin.valid()) return false;
  const NodeView model = open.view(origin);
  if (model.input_count() != node.input_count()) return false;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (counterpart_of(open, plan, node.input(i)) != model.input(i)) return false;
  return true;
}

}  // namespace

ValueId counterpart_of(const plan::Graph& open, const DistributedPlan& plan, ValueId value) {
  const auto producer = [&] { return plan.graph.view(plan.graph.value(value).producer); };
  while (ops::find_communication(producer().op()) != nullptr) {
    if (&producer().op() == &ops::addends()) return {};  // a partial sum is not the value
    value = producer().input(plan.graph.value(value).result);
  }
  const plan::Value& made = plan.graph.value(value);
  const NodeId origin = plan.origin[made.producer.value];
  if (!origin.valid() || made.result >= open.node(origin).result_count) return {};
  return open.result(origin, made.result);
}

NodeId find_changed_integers(const plan::Graph& open, const DistributedPlan& plan) {
  // By value: integers, booleans, and reals computed only from these.
  std::vector<bool> counts(plan.graph.value_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    bool reads = false, only = node.input_count() > 0;
    for (const ValueId input : node.node().inputs) {
      const bool is_constant = plan.graph.node(plan.graph.value(input).producer).op == &ops::constant();
      reads |= counts[input.value];
      only &= counts[input.value] || is_constant;
    }
    bool makes = false;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const bool whole = !plan::is_real(node.result_type(k).dtype);
      counts[node.result(k).value] = whole || (reads && only);
      makes |= whole;
    }
    if (ops::is_source(node.op()) || ops::find_communication(node.op()) != nullptr) continue;
    if ((reads || makes) && !is_as_modelled(open, plan, node)) return node.id();
  }
  return {};
}

}  // namespace weft::distribute
