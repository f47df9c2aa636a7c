#include "weft/plan/graph/settle_phases.h"

#include <vector>

#include "weft/plan/graph/transplant.h"

namespace weft::plan {

Status settle_phases(Graph& graph) {
  bool is_settled = true;
  std::vector<When> when;
  for (std::size_t n = 0; n < graph.node_count(); ++n) when.push_back(graph.node(NodeId(n)).when);
  for (std::size_t n = graph.node_count(); n-- > 0;)
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      When& made = when[graph.value(input).producer.value];
      if (made.phase <= when[n].phase) continue;
      made = when[n];
      is_settled = false;
    }
  if (is_settled) return {};
  Graph settled;
  settled.name = graph.name;
  Transplant moved(graph, settled);
  for (std::size_t s = 0; s < graph.symbols().size(); ++s) moved.symbol(Symbol(s));
  for (std::size_t s = 0; s < graph.scope_count(); ++s) settled.add_scope(graph.scope(ScopeId(s)));
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    settled.set_label(graph.node(NodeId(n)).label);
    settled.set_scope(graph.node(NodeId(n)).scope);
    WEFT_TRY_STATUS(moved.node_at(when[n], NodeId(n), graph.node(NodeId(n)).inputs));
  }
  for (const Output& output : graph.outputs()) settled.add_output(output, output.value);
  graph = std::move(settled);
  return {};
}

}  // namespace weft::plan
