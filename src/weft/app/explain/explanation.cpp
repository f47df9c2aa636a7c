#include "weft/app/explain/explanation.h"

#include "weft/plan/ops/operators.h"

namespace weft::explain {

using plan::NodeId;

Entry outline(const Explanation& explanation, plan::Phase phase) {
  std::span<const double> node_seconds;
  if (explanation.measurement) node_seconds = explanation.measurement->times.node_seconds;
  const plan::Graph& graph = *explanation.graph;
  std::vector<double> node_kept(explanation.kept.empty() ? 0 : graph.node_count());
  for (const plan::ValueId value : explanation.kept)
    node_kept[graph.value(value).producer.value] += static_cast<double>(graph.type(value).bytes());
  return outline(graph, phase, explanation.cluster.device, node_seconds, node_kept);
}

std::int64_t count_parameters(const plan::Graph& graph) {
  std::int64_t count = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(NodeId(n)).op == &ops::parameter())
      count += graph.type(graph.result(NodeId(n))).elements();
  return count;
}

double other_seconds(const plan::Graph& graph, const program::Attribution& times) {
  double seconds = times.other_seconds;
  for (std::size_t n = 0; n < times.node_seconds.size(); ++n)
    if (!takes_time(graph.node(NodeId(n)))) seconds += times.node_seconds[n];
  return seconds;
}

}  // namespace weft::explain
