#include "weft/program/items.h"

#include <algorithm>

#include "weft/ops/operators.h"

namespace weft::program {

namespace {

// What is not f32 is computed by definition, all at once; labels and positions must be i32 and
// steps i64 for the kernels.
bool has_kernel_types(const plan::NodeView& node) {
  using enum plan::DType;
  for (std::size_t k = 0; k < node.result_count(); ++k)
    if (node.result_type(k).dtype != f32) return false;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const plan::Type type = node.input_type(i);
    if (is_real(type.dtype) && type.dtype != f32) return false;
    if (is_integer(type.dtype) && type.dtype != (type.rank() == 0 ? i64 : i32)) return false;
  }
  return true;
}

}  // namespace

std::int64_t item_count(const plan::NodeView& node) {
  if (!has_kernel_types(node)) return 1;
  const plan::Operator* op = &node.op();
  const auto is_any = [&](auto... accessors) { return ((op == &accessors()) || ...); };
  const plan::Type type = node.result_count() > 0 ? node.result_type(0) : plan::Type{};
  if (is_any(ops::conv2d, ops::conv2d_input_gradient)) return type.dims[0].size;
  if (is_any(ops::max_pool, ops::avg_pool, ops::max_pool_gradient, ops::avg_pool_gradient))
    return type.elements() / (type.dims[type.rank() - 1].size * type.dims[type.rank() - 2].size);
  if (is_any(ops::sgd, ops::momentum, ops::adam, ops::adamw, ops::dropout)) return type.elements();
  // Rows that lie one after the other.
  if (is_any(ops::cross_entropy, ops::cross_entropy_gradient)) {
    const plan::Type logits = node.input_type(0);
    if (logits.dims.back().index != node.symbol(0)) return 1;
    for (std::size_t i = 1; i < node.input_count(); ++i)
      if (!std::ranges::equal(node.input_type(i).dims, logits.dims.first(logits.rank() - 1))) return 1;
    return logits.elements() / logits.dims.back().size;
  }
  if (is_any(ops::gather)) {
    // positions[p..], table[v, d..] -> [p.., d..]: the plain lookup
    const plan::Type positions = node.input_type(0), table = node.input_type(1);
    if (table.dims.front().index != node.symbol(0) || type.rank() + 1 != positions.rank() + table.rank())
      return 1;
    return positions.elements();
  }
  return 1;
}

bool operand_has_items(const plan::NodeView& node, std::size_t operand) {
  const plan::Operator* op = &node.op();
  const auto is_any = [&](auto... accessors) { return ((op == &accessors()) || ...); };
  if (is_any(ops::sgd, ops::momentum, ops::adam, ops::adamw))
    return operand < 4 && node.input_type(operand).rank() > 0;
  if (is_any(ops::max_pool_gradient, ops::cross_entropy, ops::cross_entropy_gradient)) return true;
  return operand == 0;
}

}  // namespace weft::program
