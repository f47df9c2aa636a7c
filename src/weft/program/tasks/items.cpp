#include "weft/program/tasks/items.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/linear_loss_shape.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/loss_tiles.h"

namespace weft::program {

namespace {

using plan::DType;
using plan::NodeView;
using plan::Type;

template <class... Accessors>
bool is_any(const NodeView& node, Accessors... accessors) {
  return ((&node.op() == &accessors()) || ...);
}

bool is_class_loss(const NodeView& node) {
  return is_any(node, ops::cross_entropy, ops::cross_entropy_gradient);
}

bool is_optimizer_step(const NodeView& node) {
  return is_any(node, ops::sgd, ops::momentum, ops::adam, ops::adamw);
}

// The operators with kernels in device/cpu/call_kernel.cpp.
bool has_own_kernel(const NodeView& node) {
  return is_class_loss(node) || is_optimizer_step(node) ||
         is_any(node, ops::conv2d, ops::conv2d_input_gradient, ops::conv2d_weight_gradient, ops::max_pool,
                ops::avg_pool, ops::max_pool_gradient, ops::avg_pool_gradient, ops::gather, ops::scatter_add,
                ops::top_k, ops::slot, ops::dropout, ops::rotary, ops::batch_norm, ops::labelled,
                ops::recurrence, ops::attention, ops::attention_gradient, ops::attention_merge,
                ops::linear_cross_entropy, ops::encode, ops::decode);
}

std::vector<plan::Dim> row_of(const plan::Dim* begin, const plan::Dim* end) { return {begin, end}; }

// Whether statistics are per channel, or per batch share and channel.
bool has_channels(const NodeView& node) {
  const Type x = node.input_type(0), channel = node.input_type(1);
  return channel.rank() == 1 || (channel.rank() == 2 && x.position(channel.dims[0].index) == 0 &&
                                 std::ranges::equal(channel.dims, node.input_type(2).dims));
}

// Narrow gradients of keys and values are accumulated in separate f32 sums, one for all heads that
// share them: keys and values must be shared alike.
bool sums_in_place(const NodeView& node) {
  const Type k = node.input_type(1), v = node.input_type(2);
  if (k.dtype == DType::f32 && v.dtype == DType::f32) return true;
  for (const plan::Dim& dim : ops::attending(node).rows)
    if (k.has(dim.index) != v.has(dim.index)) return false;
  return true;
}

// Whether hidden, words and labels are stored row by row, or words transposed.
bool is_stored_as_matrices(const NodeView& node) {
  const ops::LinearLossShape of = ops::classifying(node);
  const auto joined = [](std::span<const plan::Dim> first, std::span<const plan::Dim> last) {
    std::vector<plan::Dim> dims(first.begin(), first.end());
    dims.insert(dims.end(), last.begin(), last.end());
    return dims;
  };
  const Type words = node.input_type(1);
  return std::ranges::equal(node.input_type(0).dims, joined(of.rows, of.inner)) &&
         std::ranges::equal(node.input_type(2).dims, of.rows) &&
         (std::ranges::equal(words.dims, joined({&of.over, 1}, of.inner)) ||
          std::ranges::equal(words.dims, joined(of.inner, {&of.over, 1})));
}

// Each worker counts a queue per expert in its own memory.
constexpr std::int64_t kMostExperts = std::int64_t{1} << 20;

bool is_float(DType dtype) { return is_real(dtype) && dtype != DType::f64; }

// The reason if an element type has no kernel; otherwise empty.
std::string why_by_type(const NodeView& node) {
  // Operators that only move data accept any type.
  const bool moves = is_any(node, ops::gather);
  const auto refused = [&](DType dtype) { return is_real(dtype) && !is_float(dtype); };
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const DType dtype = node.input_type(i).dtype;
    if (moves && i == 1) continue;
    if (refused(dtype)) return fmt::format("its elements are {}", plan::name(dtype));
  }
  // Data that is summed, ranked or rotated must be float.
  const bool whole_first = is_any(node, ops::gather, ops::scatter_add, ops::slot, ops::labelled, ops::decode);
  const DType worked = node.input_type(is_any(node, ops::scatter_add) ? 1 : 0).dtype;
  if ((!whole_first || is_any(node, ops::scatter_add)) && !is_float(worked))
    return fmt::format("its elements are {}", plan::name(worked));
  if (is_any(node, ops::adam, ops::adamw) && node.input_type(4).dtype != DType::i64)
    return "its step is not i64";
  if (is_any(node, ops::dropout) && node.input_type(1).dtype != DType::i64) return "its step is not i64";
  return {};
}

}  // namespace

std::string why_reference_op(const NodeView& node) {
  if (ops::is_pointwise(node.op()) || is_any(node, ops::cast, ops::constant, ops::position)) return {};
  if (is_any(node, ops::concat, ops::pad)) return {};
  if (is_any(node, ops::contract) && node.input_count() > 2)
    return fmt::format("it multiplies {} factors at once", node.input_count());
  if (!has_own_kernel(node)) {
    if (node.input_count() > 0 && !is_float(node.input_type(0).dtype))
      return fmt::format("its elements are {}", plan::name(node.input_type(0).dtype));
    return "it has no kernel";
  }
  if (std::string why = why_by_type(node); !why.empty()) return why;
  if (is_any(node, ops::labelled) && !is_float(node.result_type(0).dtype))
    return fmt::format("its result is {}", plan::name(node.result_type(0).dtype));
  if (is_any(node, ops::attention_gradient) && !sums_in_place(node))
    return fmt::format("its heads share keys but not values, in {}", plan::name(node.input_type(1).dtype));
  if (is_any(node, ops::linear_cross_entropy) && !is_stored_as_matrices(node))
    return "its rows and classes are not stored as matrices";
  if (is_any(node, ops::batch_norm) && !has_channels(node))
    return fmt::format("its statistics have {} indices", node.input_type(1).rank());
  if (is_any(node, ops::slot) && node.integer(0) > kMostExperts)
    return fmt::format("it has more than {} experts", kMostExperts);
  return {};
}

bool computes_in_f32(const NodeView& node) {
  return has_own_kernel(node) && !is_any(node, ops::gather) && why_reference_op(node).empty();
}

std::vector<Symbol> rows_over(const NodeView& node) {
  if (!why_reference_op(node).empty()) return {};
  if (is_class_loss(node) || is_any(node, ops::top_k)) return {node.symbol(0)};
  if (is_any(node, ops::encode, ops::decode)) return ops::coded_indices(node);
  if (is_any(node, ops::slot)) return {node.indices(2).begin(), node.indices(2).end()};
  if (is_any(node, ops::rotary)) {
    // Pairs last and positions before them; indices in between do not matter.
    const Type x = node.input_type(0);
    const int along = x.position(node.symbol(0)), pairs = x.position(node.symbol(1));
    if (pairs + 1 == static_cast<int>(x.rank()) && along < pairs) return {};
    return {node.symbol(0), node.symbol(1)};
  }
  return {};
}

bool accepts_any_rows(const NodeView& node) {
  return is_any(node, ops::attention, ops::attention_gradient) && why_reference_op(node).empty();
}

// For q and k, the indices that a score sums; for v and values like it, the elements of a value;
// none for sums and masks.
std::vector<plan::Dim> row_of_operand(const NodeView& node, std::size_t operand) {
  const ops::AttentionGeometry of = ops::attending(node);
  if (operand < 2) return row_of(of.inner.begin(), of.inner.end());
  const bool has_values =
      operand == 2 || (is_any(node, ops::attention_gradient) && (operand == 3 || operand == 5));
  return has_values ? row_of(of.values.begin(), of.values.end()) : std::vector<plan::Dim>();
}

std::vector<plan::Dim> row_of_result(const NodeView& node, std::size_t result) {
  if (is_any(node, ops::attention_gradient)) return row_of_operand(node, result);
  return result == 0 ? row_of_operand(node, 2) : std::vector<plan::Dim>();
}

std::int64_t item_count(const NodeView& node) {
  if (!why_reference_op(node).empty()) return 1;
  const Type type = node.result_count() > 0 ? node.result_type(0) : Type{};
  if (is_any(node, ops::conv2d, ops::conv2d_input_gradient)) return type.dims[0].size;
  if (is_any(node, ops::max_pool, ops::avg_pool, ops::max_pool_gradient, ops::avg_pool_gradient))
    return type.elements() / (type.dims[type.rank() - 1].size * type.dims[type.rank() - 2].size);
  if (is_optimizer_step(node) || is_any(node, ops::dropout)) return type.elements();
  if (is_class_loss(node) || is_any(node, ops::top_k, ops::slot)) {
    const Type x = node.input_type(0);
    std::int64_t row = 1;
    for (const Symbol index : rows_over(node)) row *= x.size_of(index);
    return x.elements() / row;
  }
  if (is_any(node, ops::encode, ops::decode)) return ops::code_segments(node).count;
  if (is_any(node, ops::recurrence)) {
    const auto along = static_cast<std::size_t>(type.position(node.symbol(0)));
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < along; ++i) rows *= type.dims[i].size;
    return rows;
  }
  if (is_any(node, ops::attention)) {
    const ops::AttentionGeometry of = ops::attending(node);
    return of.along.size == 0
               ? 0
               : of.row_count() / of.along.size * ((of.along.size + kQueryTile - 1) / kQueryTile);
  }
  if (is_any(node, ops::attention_gradient)) {
    // Heads that share keys and values accumulate into the same gradients.
    std::int64_t apart = 1;
    for (const plan::Dim& dim : ops::attending(node).rows)
      if (node.input_type(1).has(dim.index) && node.input_type(2).has(dim.index)) apart *= dim.size;
    return apart;
  }
  if (is_any(node, ops::attention_merge)) return node.input_type(1).elements();
  if (is_any(node, ops::linear_cross_entropy)) return loss_tiles(node).items();
  if (is_any(node, ops::gather)) return node.input_type(0).elements();
  if (is_any(node, ops::rotary)) return type.elements() / type.size_of(node.symbol(1));
  if (is_any(node, ops::batch_norm, ops::conv2d_weight_gradient)) {
    const plan::Type of = node.input_type(1);
    const std::int64_t channels = is_any(node, ops::batch_norm) ? of.dims.back().size : of.dims[1].size;
    const std::int64_t each = channels_per_item(node);
    return (channels + each - 1) / each;
  }
  if (is_any(node, ops::concat, ops::pad)) return type.elements();
  if (is_any(node, ops::scatter_add)) {
    // Every task reads all positions, so splitting pays only if much more data is moved.
    constexpr std::int64_t kWide = 16;
    const bool wide = node.input_type(1).elements() >= kWide * node.input_type(0).elements();
    const bool by_row = type.dims.front().index == node.symbol(0);
    return wide || !by_row ? type.dims.front().size : 1;
  }
  return 1;
}

bool operand_has_items(const NodeView& node, std::size_t operand) {
  if (is_optimizer_step(node)) return operand < 4 && node.input_type(operand).rank() > 0;
  if (is_class_loss(node) || is_any(node, ops::max_pool_gradient, ops::attention_merge)) return true;
  if (is_any(node, ops::attention, ops::attention_gradient, ops::linear_cross_entropy)) return false;
  if (is_any(node, ops::scatter_add, ops::batch_norm, ops::concat, ops::pad, ops::conv2d_weight_gradient))
    return false;
  // A decay may lack the rows' indices, or have them in another order.
  if (is_any(node, ops::recurrence)) return operand == 1;
  return operand == 0;
}

bool results_have_items(const NodeView& node) {
  return !is_any(node, ops::batch_norm, ops::conv2d_weight_gradient, ops::attention, ops::attention_gradient,
                 ops::linear_cross_entropy);
}

std::int64_t channels_per_item(const NodeView& node) {
  if (is_any(node, ops::conv2d_weight_gradient)) {
    constexpr std::int64_t kDeep = 128;  // columns for nearly the full speed of a product
    const Type w = node.result_type(0);
    return std::max<std::int64_t>(kDeep / (w.dims[2].size * w.dims[3].size), 1);
  }
  constexpr std::int64_t kLine = 16;  // floats
  const Type x = node.input_type(0);
  std::int64_t inner = 1;
  for (std::size_t i = x.rank(); i-- > 0 && x.dims[i].index != node.input_type(1).dims.back().index;)
    inner *= x.dims[i].size;
  return inner >= kLine ? 1 : kLine;
}

}  // namespace weft::program
