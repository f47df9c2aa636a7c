#include "weft/ops/f8.h"

#include "weft/ops/operators.h"

namespace weft::ops {

bool multiplies_f8(const plan::NodeView& product) {
  const plan::Graph& graph = product.graph();
  for (const plan::ValueId operand : product.node().inputs) {
    plan::NodeView maker = graph.view(graph.value(operand).producer);
    // Casts, views, gathers: what has one operand and changes no number.
    while (!is_f8(maker.op()) && maker.input_count() == 1 &&
           (&maker.op() == &cast() || maker.op().is_view() || &maker.op() == &all_gather() ||
            &maker.op() == &all_to_all() || &maker.op() == &slice_across() || &maker.op() == &transpose()))
      maker = graph.view(graph.value(maker.input(0)).producer);
    if (!is_f8(maker.op())) return false;
  }
  return product.input_count() > 0;
}

}  // namespace weft::ops
