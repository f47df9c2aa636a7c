#include "weft/plan/spmd/decompose_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "weft/plan/ops/loops.h"

namespace weft::spmd {
namespace {

using plan::Dim;
using plan::DType;
using plan::ValueId;

// Labels are compared with positions as floats, which represent all integers up to here.
constexpr std::int64_t kMostClasses = std::int64_t{1} << 24;

constexpr std::size_t kNormOver = 0, kNormEpsilon = 1, kNormMomentum = 2, kNormMode = 3;  // attributes

// Exponentials and sums need at least f32.
DType wide(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

}  // namespace

std::span<const Symbol> decomposable_rows(const plan::NodeView& node) {
  if (&node.op() == &ops::softmax()) return node.indices(0);
  if (&node.op() == &ops::batch_norm()) return node.indices(kNormOver);
  const bool is_linear = &node.op() == &ops::linear_cross_entropy();
  if (&node.op() != &ops::cross_entropy() && &node.op() != &ops::cross_entropy_gradient() && !is_linear)
    return {};
  // The loss names one index, which is an index of the logits, or of the words if fused with them.
  const plan::Type classes = node.input_type(is_linear ? 1 : 0);
  const auto at = static_cast<std::size_t>(classes.position(node.symbol(0)));
  if (classes.dims[at].size > kMostClasses) return {};
  return {&classes.dims[at].index, 1};
}

Result<std::vector<ValueId>> RowDecomposer::open(const plan::NodeView& node,
                                                 std::span<const ValueId> inputs) {
  std::vector<ValueId> made;
  if (&node.op() == &ops::batch_norm())
    made = batch_norm_of(node, inputs);
  else if (&node.op() == &ops::softmax())
    made = {softmax_of(inputs[0], node.indices(0))};
  else if (&node.op() == &ops::linear_cross_entropy())
    made = linear_cross_entropy_of(ops::classifying(node), inputs);
  else if (&node.op() == &ops::cross_entropy())
    made = {cross_entropy_of(inputs[0], inputs[1], node.symbol(0), node.real(1))};
  else
    made = {cross_entropy_gradient_of(inputs[0], inputs[1], inputs[2], node.symbol(0), node.real(1))};
  WEFT_TRY_STATUS(f_.status());
  for (std::size_t k = 0; k < made.size(); ++k) {
    const plan::Type type = node.result_type(k);
    WEFT_TRY(cast, ops::add_cast(graph_, made[k], type.dtype));
    WEFT_TRY(result, ops::add_transpose(graph_, cast, ops::indices_of(type.dims)));
    made[k] = result;
  }
  return made;
}

RowDecomposer::Rows RowDecomposer::rows_of(ValueId x, std::span<const Symbol> over, bool may_be_empty) {
  const auto [known, fresh] =
      rows_.try_emplace({x, std::vector<Symbol>(over.begin(), over.end()), may_be_empty});
  Rows& rows = known->second;
  if (!fresh || !f_.status().ok()) return rows;
  const plan::Type type = graph_.type(x);
  const std::vector<Symbol> kept = ops::indices_of(ops::without(type.dims, over));
  rows.peak = f_.cast(f_.reduce("peak", x, kept), wide(type.dtype));
  if (may_be_empty) {  // a row with only -inf: its exponentials are zeros, not NaN
    const ValueId nothing = f_.number(-std::numeric_limits<double>::infinity(), rows.peak);
    rows.peak =
        f_(ops::select(), {f_(ops::equal(), {rows.peak, nothing}), f_.number(0, rows.peak), rows.peak});
  }
  rows.total = f_.reduce("sum", exponential(x, rows.peak), kept);
  return rows;
}

ValueId RowDecomposer::exponential(ValueId x, ValueId peak) {
  if (!f_.status().ok()) return {};
  return f_(ops::exp(), {f_(ops::sub(), {f_.cast(x, wide(graph_.type(x).dtype)), peak})});
}

ValueId RowDecomposer::softmax_of(ValueId x, std::span<const Symbol> over) {
  const auto [peak, total] = rows_of(x, over, true);
  if (!f_.status().ok()) return {};
  const ValueId empty = f_(ops::equal(), {total, f_.number(0, total)});
  const ValueId divisor = f_(ops::select(), {empty, f_.number(1, total), total});
  return f_(ops::div(), {exponential(x, peak), divisor});
}

// Whether the label is a valid class. It gathers from a table of ones, since the field has no
// meaningful order for a comparison. The table's index is new, so no axis slices it.
ValueId RowDecomposer::has_label(ValueId label, Dim classes, DType real) {
  const auto [known, fresh] = labelled_.try_emplace({label, classes.size, real});
  if (!fresh || !f_.status().ok()) return known->second;
  std::string name = std::string(graph_.text(classes.index)) + "_all";
  while (graph_.symbols().find(name).valid()) name += "_";
  const Dim all{graph_.symbol(name), classes.size};
  const ValueId one = f_.keep([&] { return ops::add_constant(graph_, 1, real); });
  const ValueId ones = f_.keep([&] { return ops::add_broadcast(graph_, one, {&all, 1}); });
  const ValueId found = f_.keep([&] { return ops::add_gather(graph_, label, ones, all.index); });
  return known->second = f_(ops::equal(), {found, one});
}

ValueId RowDecomposer::is_label(ValueId label, Dim classes, DType real) {
  const ValueId place = f_.keep([&] { return ops::add_position(graph_, classes); });
  return f_(ops::equal(), {f_.cast(place, real), f_.cast(label, real)});
}

ValueId RowDecomposer::cross_entropy_of(ValueId x, ValueId label, Symbol over, double smoothing) {
  const auto [peak, total] = rows_of(x, {&over, 1}, false);
  if (!f_.status().ok()) return {};
  const plan::Type logits = graph_.type(x);
  const ValueId picked = f_.keep([&] { return ops::add_gather(graph_, label, x, over); });
  ValueId wanted = f_.cast(picked, wide(logits.dtype));
  if (smoothing > 0) {
    const std::vector<Symbol> kept = ops::indices_of(ops::without(logits.dims, {&over, 1}));
    const ValueId all = f_.reduce("sum", f_.cast(x, wide(logits.dtype)), kept);
    const double each = smoothing / static_cast<double>(logits.size_of(over));
    wanted = f_(ops::add(), {f_(ops::mul(), {wanted, f_.number(1 - smoothing, wanted)}),
                             f_(ops::mul(), {all, f_.number(each, all)})});
  }
  const ValueId loss = f_(ops::sub(), {f_(ops::add(), {peak, f_(ops::log(), {total})}), wanted});
  return f_(ops::select(),
            {has_label(label, {over, logits.size_of(over)}, wide(logits.dtype)), loss, f_.number(0, total)});
}

ValueId RowDecomposer::cross_entropy_gradient_of(ValueId x, ValueId label, ValueId dloss, Symbol over,
                                                 double smoothing) {
  const auto [peak, total] = rows_of(x, {&over, 1}, false);
  if (!f_.status().ok()) return {};
  const plan::Type logits = graph_.type(x);
  const Dim classes{over, logits.size_of(over)};
  const DType real = wide(logits.dtype);
  const ValueId times = f_.cast(dloss, real), zero = f_.number(0, total);
  ValueId share = f_(ops::mul(), {exponential(x, peak), f_(ops::div(), {times, total})}), sure = times;
  if (smoothing > 0) {
    const double each = smoothing / static_cast<double>(classes.size);
    share = f_(ops::sub(), {share, f_(ops::mul(), {times, f_.number(each, times)})});
    sure = f_(ops::mul(), {times, f_.number(1 - smoothing, times)});
  }
  const ValueId one = f_(ops::select(), {is_label(label, classes, real), sure, zero});
  return f_(ops::select(), {has_label(label, classes, real), f_(ops::sub(), {share, one}), zero});
}

// Computes the logits as a value, of which each rank has the words it holds.
std::vector<ValueId> RowDecomposer::linear_cross_entropy_of(const ops::LinearLossShape& of,
                                                            std::span<const ValueId> inputs) {
  const ValueId hidden = inputs[0], words = inputs[1], label = inputs[2];
  const Symbol over = of.over.index;
  ops::DimList dims(of.rows);
  dims.push_back(of.over);
  ValueId logits = f_.product({hidden, words}, dims);
  if (inputs.size() > 3) logits = f_(ops::add(), {logits, inputs[3]});
  const ValueId losses = cross_entropy_of(logits, label, over, of.smoothing);
  if (!f_.status().ok()) return {};
  if (!of.slopes) return {f_.reduce("sum", losses, {})};
  const plan::DType narrow = graph_.type(hidden).dtype;
  ValueId rows = f_.number(1, losses);
  rows = f_.keep([&] { return ops::add_broadcast(graph_, rows, of.rows); });
  const ValueId wide_slopes = cross_entropy_gradient_of(logits, label, rows, over, of.smoothing);
  const ValueId slopes = f_.cast(wide_slopes, narrow);
  if (!f_.status().ok()) return {};
  std::vector<ValueId> made = {f_.reduce("sum", losses, {}),
                               f_.product({slopes, words}, graph_.type(hidden).dims),
                               f_.product({slopes, hidden}, graph_.type(words).dims)};
  if (inputs.size() > 3) made.push_back(f_.reduce("sum", wide_slopes, {&over, 1}));
  return made;
}

// Subtracts the mean from x twice rather than storing the result: between the passes all ranks wait
// for an all-reduce anyway.
std::vector<ValueId> RowDecomposer::batch_norm_of(const plan::NodeView& node,
                                                  std::span<const ValueId> inputs) {
  const plan::Type type = graph_.type(inputs[0]);
  const plan::DType dtype = wide(type.dtype);
  const ops::DimList channel = ops::without(type.dims, node.indices(kNormOver));
  const std::vector<Symbol> kept = ops::indices_of(channel);
  const ValueId x = f_.cast(inputs[0], dtype), running_mean = f_.cast(inputs[1], dtype),
                running_variance = f_.cast(inputs[2], dtype);
  if (!f_.status().ok()) return {};
  const auto normalized = [&](ValueId mean, ValueId variance) {
    const ValueId rstd =
        f_(ops::rsqrt(), {f_(ops::add(), {variance, f_.number(node.real(kNormEpsilon), variance)})});
    return std::pair(f_(ops::mul(), {f_(ops::sub(), {x, mean}), rstd}), rstd);
  };
  if (node.word(kNormMode) == "infer") {
    const auto [y, rstd] = normalized(running_mean, running_variance);
    return {y, running_mean, running_variance, rstd};
  }
  const ValueId mean = f_.reduce("mean", x, kept), centered = f_(ops::sub(), {x, mean});
  const ValueId variance = f_.reduce("mean", f_(ops::mul(), {centered, centered}), kept);
  const auto [y, rstd] = normalized(mean, variance);
  if (!f_.status().ok()) return {};
  const std::int64_t count = type.elements() / ops::points_of(channel);
  const ValueId unbias =
      f_(ops::div(), {f_.number(static_cast<double>(count), x),
                      f_.number(static_cast<double>(std::max<std::int64_t>(count - 1, 1)), x)});
  const ValueId momentum = f_.number(node.real(kNormMomentum), x);
  const auto moved = [&](ValueId running, ValueId towards) {
    return f_(ops::add(), {running, f_(ops::mul(), {momentum, f_(ops::sub(), {towards, running})})});
  };
  return {y, moved(running_mean, mean), moved(running_variance, f_(ops::mul(), {variance, unbias})), rstd};
}

}  // namespace weft::spmd
