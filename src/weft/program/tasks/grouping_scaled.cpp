// f8 products with their scales:
//
//   y[m, n] = (sum over k of q[m, k] r[k, n]) s[m] t[n]
//
// On accelerators, f8 products take s and t as operands and multiply the sum before rounding it,
// without a separate pass. On the CPU, a later pass multiplies.
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/grouper.h"

namespace weft::program {

plan::ValueId Grouper::take_scales(const plan::NodeView& product, Group& group,
                                   std::vector<plan::ValueId>& scales) {
  plan::ValueId value = product.result(0);
  if (!any_float_ || !plan::is_f8(product.input_type(0).dtype)) return value;
  while (!is_graph_output(graph_, value) && readers_.of(value).size() == 1) {
    const plan::NodeView scaling = graph_.view(readers_.of(value).front());
    if (&scaling.op() != &ops::mul() || !needed_[scaling.id().value] || scaling.input(0) != value) break;
    const plan::ValueId scale = scaling.input(1);
    const bool is_known = graph_.value(scale).producer.value < product.id().value;
    const bool is_then = turns_.empty() || turns_[scaling.id().value] == turns_[product.id().value];
    if (!is_known || !is_then || graph_.type(scale).rank() >= product.result_type(0).rank()) break;
    group.nodes.push_back(scaling.id());
    group.operands.push_back(stored(scale));
    scales.push_back(scale);
    value = scaling.result(0);
  }
  return value;
}

}  // namespace weft::program
