#include "weft/planner/search/sync/sync_every.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/local_steps.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/gradient_sums.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;

// Whether the source is averaged. If a parameter has a master weight, only the latter is.
bool is_learned(const plan::Graph& graph, const NodeView& source) {
  if (&source.op() != &ops::parameter()) return source.word(0).ends_with(train::kMasterSuffix);
  const std::string master = std::string(source.word(0)) + std::string(train::kMasterSuffix);
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const NodeView other = graph.view(NodeId(n)); &other.op() == &ops::state() && other.word(0) == master)
      return false;
  return true;
}

bool is_in(const std::vector<std::size_t>& axes, std::size_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

// A sum of gradients over ranks with different examples, which local steps omit.
bool is_left_out(const distribute::DistributedPlan& plan, const std::vector<bool>& is_gradient,
                 const std::vector<std::size_t>& data, const NodeView& node) {
  if (!is_gradient[node.id().value] || &node.op() != &ops::all_reduce()) return false;
  const ops::Communication* const op = ops::find_communication(node.op());
  return op != nullptr && is_in(data, static_cast<std::size_t>(plan.mesh.find(op->axis(node))));
}

}  // namespace

Status check_learns_alone(const distribute::DistributedPlan& plan) {
  const plan::Graph& graph = plan.graph;
  const std::vector<bool> is_gradient = gradient_sums(graph);
  const std::vector<std::size_t> data = distribute::data_axes(plan);
  bool has_sums = false;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    has_sums = has_sums || is_left_out(plan, is_gradient, data, node);
    if (&node.op() != &ops::parameter() && &node.op() != &ops::state()) continue;
    const plan::Layout& layout = plan.layouts[node.result(0).value];
    for (const std::size_t axis : data)
      if (!layout.axes[axis].is_replicated())
        return user_error(
            fmt::format("sync_every: ranks along {} split {} among them, so no rank can train on its own",
                        plan.mesh.axes[axis].name, node.word(0)),
            "use a distribution that slices the batch and shards nothing: distribution = 'rank=4: slice b'");
  }
  if (has_sums) return {};
  return user_error("sync_every: this plan does not sum gradients across ranks that slice the batch",
                    "set sync_every = 1, or use a distribution that slices the batch; a batch with fewer "
                    "examples than ranks cannot be sliced");
}

Result<LocalSteps> sync_every(const distribute::DistributedPlan& plan, std::int64_t steps) {
  WEFT_TRY_STATUS(check_learns_alone(plan));
  const plan::Graph& graph = plan.graph;
  const std::vector<bool> is_gradient = gradient_sums(graph);
  LocalSteps made;
  made.axes = distribute::data_axes(plan);
  distribute::PlanEdit edit(plan);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    const bool is_source = &node.op() == &ops::parameter() || &node.op() == &ops::state();
    if (is_source && is_learned(graph, node)) made.bytes += graph.type(node.result(0)).bytes();
    if (!is_left_out(plan, is_gradient, made.axes, node)) {
      WEFT_TRY_STATUS(edit.keep(node.id()));
      continue;
    }
    edit.adopt_context(node.id());
    std::vector<plan::ValueId> inputs;
    for (const plan::ValueId input : node.node().inputs) inputs.push_back(edit.now(input));
    const plan::AttributeValue attributes[] = {edit.symbol(node.symbol(0)), edit.symbol(node.symbol(1)),
                                               steps};
    WEFT_TRY(sum, edit.graph().add(ops::all_reduce(), inputs, attributes));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      edit.become(node.result(k), edit.graph().result(sum, k));
    made.gradients += static_cast<std::int64_t>(node.result_count());
  }
  WEFT_TRY(edited, edit.finish());
  made.plan = std::move(edited);
  return made;
}

}  // namespace weft::search
