#include "weft/plan/spmd/ring.h"

#include "weft/plan/ops/attention_geometry.h"

namespace weft::spmd {

using plan::AxisLayout;
using plan::NodeView;

namespace {

AxisLayout cut_in_ring(const NodeView& node, const plan::Type& type) {
  for (const std::size_t attribute : {ops::kAttentionOver, ops::kAttentionAlong})
    if (type.has(node.symbol(attribute))) return AxisLayout::sliced(node.symbol(attribute));
  return AxisLayout::replicated();
}

}  // namespace

bool supports_ring_attention(const NodeView& node) {
  if (!ops::is_attention_operator(node.op())) return false;
  const std::size_t mask = ops::mask_of(node.op());
  return mask >= node.input_count() || !node.input_type(mask).has(node.symbol(ops::kAttentionOver)) ||
         !node.input_type(mask).has(node.symbol(ops::kAttentionAlong));
}

std::vector<AxisLayout> ring_operands(const NodeView& node) {
  std::vector<AxisLayout> operands;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    operands.push_back(cut_in_ring(node, node.input_type(i)));
  return operands;
}

std::vector<AxisLayout> ring_results(const NodeView& node) {
  std::vector<AxisLayout> results;
  for (std::size_t k = 0; k < node.result_count(); ++k)
    results.push_back(cut_in_ring(node, node.result_type(k)));
  return results;
}

std::vector<std::size_t> ring_axes(const NodeView& node, std::span<const plan::Layout> layouts) {
  if (!supports_ring_attention(node)) return {};
  const std::vector<AxisLayout> needed = ring_operands(node);
  std::vector<std::size_t> found;
  for (std::size_t axis = 0; axis < layouts[node.input(0).value].axes.size(); ++axis) {
    bool all = true;
    for (std::size_t i = 0; i < needed.size(); ++i)
      all &= layouts[node.input(i).value].axes[axis] == needed[i];
    if (all) found.push_back(axis);
  }
  return found;
}

bool later_ranks_attend_more(const plan::Graph& graph, std::span<const plan::Layout> layouts) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(plan::NodeId(n));
    if (!ops::is_attention_operator(node.op()) || node.integer(ops::kAttentionCausal) == 0) continue;
    for (const AxisLayout& axis : layouts[node.input(ops::kAttentionQ).value].axes)
      if (axis.slices(node.symbol(ops::kAttentionAlong))) return true;
  }
  return false;
}

}  // namespace weft::spmd
