#include "weft/parallel/distribute/half_dropout.h"

#include <array>
#include <vector>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

constexpr std::size_t kDropRate = 0, kDropStream = 1, kDropBegin = 2, kDropWhole = 3;  // attributes
constexpr double kHalf = 0.5;

bool drops(const plan::NodeView& node) { return &node.op() == &ops::dropout() && node.real(kDropRate) > 0; }

}  // namespace

bool has_dropout(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (drops(graph.view(plan::NodeId(n)))) return true;
  return false;
}

Result<plan::Graph> with_half_dropout(const plan::Graph& graph) {
  plan::Graph made;
  made.name = graph.name;
  plan::Transplant moved(graph, made);
  for (std::size_t s = 0; s < graph.symbols().size(); ++s) moved.symbol(Symbol(s));
  for (std::size_t s = 0; s < graph.scope_count(); ++s) made.add_scope(graph.scope(plan::ScopeId(s)));
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    made.set_label(node.node().label);
    made.set_scope(node.node().scope);
    made.set_when(node.node().when);
    // Values keep their ids, as nodes do.
    const std::span<const plan::ValueId> inputs = node.node().inputs;
    if (!drops(node)) {
      WEFT_TRY_STATUS(moved.node(node.id(), inputs));
      continue;
    }
    const std::array<plan::AttributeValue, 4> attributes = {
        kHalf, node.integer(kDropStream), node.integer(kDropBegin), node.symbol(kDropWhole)};
    WEFT_TRY_STATUS(made.add(node.op(), inputs, attributes));
  }
  for (const plan::Output& output : graph.outputs()) made.add_output(output, output.value);
  return made;
}

}  // namespace weft::distribute
