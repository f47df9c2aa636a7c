#include "weft/distribute/replay.h"

#include <fmt/format.h>

#include "weft/distribute/open_nodes.h"
#include "weft/ops/communication.h"
#include "weft/ops/layouts.h"
#include "weft/ops/operators.h"
#include "weft/plan/transplant.h"
#include "weft/plan/verify.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::ValueId;

Status check_alike(const plan::Graph& original, const plan::Graph& other) {
  if (original.node_count() != other.node_count())
    return user_error(fmt::format("the plans differ in more than sizes: {} nodes and {}",
                                  original.node_count(), other.node_count()));
  for (std::size_t n = 0; n < original.node_count(); ++n)
    if (original.node(NodeId(n)).op != other.node(NodeId(n)).op)
      return user_error(fmt::format("the plans differ in more than sizes: {} and {}",
                                    describe(original, NodeId(n)), describe(other, NodeId(n))));
  return {};
}

}  // namespace

Result<DistributedPlan> replay(const DistributedPlan& plan, const plan::Graph& original,
                               const plan::Graph& other, const plan::Mesh& mesh) {
  WEFT_TRY_STATUS(check_alike(original, other));
  DistributedPlan made;
  made.mesh = mesh;
  made.graph.name = plan.graph.name;
  made.opened = plan.opened;
  made.origin = plan.origin;
  made.phases = plan.phases;
  OpenedPlan open;
  if (!plan.opened.empty()) {
    WEFT_TRY(opened, open_nodes(other, plan.opened));
    open = std::move(opened);
  }
  plan::Transplant moved(plan.graph, made.graph),
      computed(plan.opened.empty() ? other : open.graph, made.graph);
  std::vector<ValueId> values(plan.graph.value_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(NodeId(n));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
    made.graph.set_label(node.node().label.valid() ? moved.symbol(node.node().label) : Symbol());
    const bool communicates = ops::find_communication(node.op()) != nullptr;
    plan::AttributeValue layout;
    if (ops::is_source(node.op())) layout = made.graph.symbol(ops::layout_of(node));
    Result<NodeId> added =
        communicates ? moved.node(node.id(), inputs)
                     : computed.node(plan.origin[n], inputs, ops::is_source(node.op()) ? &layout : nullptr);
    if (!added.ok()) {
      Error error = std::move(added).error();
      error.message = fmt::format("node {}: {}", describe(plan.graph, node.id()), error.message);
      return error;
    }
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values[node.result(k).value] = made.graph.result(*added, k);
  }
  for (const plan::Output& output : plan.graph.outputs())
    made.graph.add_output(moved.symbol(output.name), values[output.value.value]);
  WEFT_TRY(layouts, ops::infer_layouts(made.graph, mesh));
  made.layouts = std::move(layouts);
  return made;
}

}  // namespace weft::distribute
