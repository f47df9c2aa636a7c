#include "weft/parallel/distribute/check_rings.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {

Status check_rings(const plan::Graph& graph, const Distribution& distribution) {
  std::vector<std::string> along;  // indices along which queries run
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() != &ops::attention()) continue;
    std::string index(graph.text(node.symbol(ops::kAttentionAlong)));
    if (std::ranges::find(along, index) == along.end()) along.push_back(std::move(index));
  }
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis) {
    const AxisUse& use = distribution.axes[axis];
    const auto attends = [&](const std::string& index) {
      return std::ranges::find(along, index) != along.end();
    };
    if (!use.ring || std::ranges::any_of(use.slice, attends)) continue;
    return user_error(fmt::format("axis {} slices {}, but no attention runs along it",
                                  distribution.mesh.axes[axis].name, fmt::join(use.slice, ", ")),
                      along.empty() ? std::string("the model has no attention: remove ring attention")
                                    : fmt::format("slice {}, ring attention", along.front()));
  }
  return {};
}

}  // namespace weft::distribute
