#include "weft/parallel/distribute/local_steps.h"

#include <algorithm>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {

std::vector<std::size_t> data_axes(const DistributedPlan& plan) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < plan.mesh.axes.size(); ++axis)
    for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
      const plan::NodeView node = plan.graph.view(plan::NodeId(n));
      if (&node.op() != &ops::input() || node.result_type(0).rank() == 0) continue;
      const plan::AxisLayout& layout = plan.layouts[node.result(0).value].axes[axis];
      if (!layout.slices(node.result_type(0).dims[0].index)) continue;
      axes.push_back(axis);
      break;
    }
  return axes;
}

std::int64_t steps_between_sums(const plan::Graph& graph) {
  std::int64_t most = 1;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    most = std::max(most, ops::steps_between_sums(graph.view(plan::NodeId(n))));
  return most;
}

}  // namespace weft::distribute
