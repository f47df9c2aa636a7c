#include "weft/predict/cost/liveness.h"

#include <algorithm>
#include <vector>

namespace weft::cost {

double peak_live_bytes(const plan::Graph& graph) {
  using plan::NodeId;
  using plan::ValueId;
  // What each value is stored in, and the last node that reads it.
  std::vector<ValueId> stored(graph.value_count());
  std::vector<std::size_t> last_use(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId value = node.result(k);
      stored[value.value] = node.op().is_view() ? stored[node.input(0).value] : value;
      last_use[stored[value.value].value] = std::max(last_use[stored[value.value].value], n);
    }
    for (const ValueId input : node.node().inputs) last_use[stored[input.value].value] = n;
  }
  for (const plan::Output& output : graph.outputs())
    last_use[stored[output.value.value].value] = graph.node_count();

  const auto counted = [&](ValueId value) {
    return stored[value.value] == value && !graph.node(graph.value(value).producer).inputs.empty();
  };
  std::vector<double> dying(graph.node_count() + 1, 0);
  double live = 0, peak = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId value = node.result(k);
      if (!counted(value)) continue;
      const double bytes = static_cast<double>(graph.type(value).bytes());
      live += bytes;
      dying[last_use[value.value]] += bytes;
    }
    peak = std::max(peak, live);
    live -= dying[n];
  }
  return peak;
}

}  // namespace weft::cost
