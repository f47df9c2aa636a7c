#include "weft/predict/cost/scaled_passes.h"

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::cost {
namespace {

using plan::NodeView;

NodeView maker_of(const NodeView& node, std::size_t operand) {
  return node.graph().view(node.graph().value(node.input(operand)).producer);
}

bool is(const NodeView& node, const plan::Operator& op) { return &node.op() == &op; }

bool is_largest(const NodeView& node) { return is(node, ops::reduce()) && node.word(0) == "largest"; }

// A maximum per row, where rows are contiguous in memory.
bool is_of_rows(const NodeView& largest) {
  const plan::Type x = largest.input_type(0), to = largest.result_type(0);
  for (std::size_t i = 0; i < to.rank(); ++i)
    if (x.dims[i].index != to.dims[i].index) return false;
  return true;
}

bool is_some_largest(const NodeView& node) {
  return is(node, ops::maximum()) && is_largest(maker_of(node, 0));
}
bool is_scale(const NodeView& node) { return is(node, ops::div()) && is_some_largest(maker_of(node, 0)); }

bool multiplies_eight_bits(const NodeView& node) {
  return is(node, ops::contract()) && node.input_count() == 2 && plan::is_f8(node.input_type(0).dtype) &&
         plan::is_f8(node.input_type(1).dtype);
}
bool scales_product(const NodeView& node) {
  if (!is(node, ops::mul())) return false;
  const NodeView scaled = maker_of(node, 0);
  return multiplies_eight_bits(scaled) || scales_product(scaled);
}

}  // namespace

bool is_within_scaled_pass(const NodeView& node) {
  if (is_largest(node)) return is_of_rows(node);
  if (is_some_largest(node) || is_scale(node) || scales_product(node)) return true;
  if (is(node, ops::div())) return is_scale(maker_of(node, 1));
  return is(node, ops::cast()) && plan::is_f8(node.input_type(0).dtype);
}

}  // namespace weft::cost
