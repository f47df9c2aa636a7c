#include "weft/plan/ops/uses.h"

namespace weft::ops {

std::vector<std::size_t> last_uses(const plan::Graph& graph) {
  std::vector<std::size_t> last(graph.value_count(), kNever);
  for (const plan::Output& output : graph.outputs()) last[output.value.value] = graph.node_count() + 1;
  for (std::size_t id = graph.node_count(); id-- > 0;) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (!is_needed(node, last)) continue;
    for (const plan::ValueId input : node.node().inputs)
      if (last[input.value] == kNever) last[input.value] = id + 1;
  }
  return last;
}

bool is_needed(const plan::NodeView& node, std::span<const std::size_t> last) {
  for (std::size_t k = 0; k < node.result_count(); ++k)
    if (last[node.result(k).value] != kNever) return true;
  return false;
}

}  // namespace weft::ops
