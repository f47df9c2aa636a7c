// linear-cross-entropy: a linear layer fused with cross-entropy, without storing the logits; and
// its derivatives.
//
//   logits[r, c] = sum over `inner` of hidden[r, ..] words[c, ..], plus bias[c] if there is one
//   loss         = sum over r of cross-entropy(logits[r], label[r])
//   dhidden      = sum over c of (softmax(logits)[r, c] - [c = label[r]]) words[c, ..]
//   dwords       = sum over r of (softmax(logits)[r, c] - [c = label[r]]) hidden[r, ..]
//   dbias        = sum over r of (softmax(logits)[r, c] - [c = label[r]])
//
// Equal to contract, cross-entropy, reduce and their gradients. Since the rows are summed, the loss
// has one gradient, which is a factor of all derivatives. So the forward pass computes them from
// the current tile of logits, and the backward pass multiplies. No logits are stored or computed
// twice.
//
// With slopes=0 it computes only the loss, for inference plans.
//
// Labels outside the classes and smoothing are as for cross-entropy. The loss, dwords and dbias are
// sums over all rows and have at least 32 bits.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/labels.h"
#include "weft/plan/ops/linear_loss_shape.h"
#include "weft/plan/ops/normalization.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kLinearLossAttributes = {
    {{"over", AttributeKind::index},
     {"inner", AttributeKind::indices},
     {"smoothing", AttributeKind::real, false, 0},
     {"slopes", AttributeKind::integer, false, 1}}};
constexpr std::size_t kLinearLossOver = 0, kLinearLossInner = 1, kLinearLossSmoothing = 2,
                      kLinearLossSlopes = 3;

constexpr std::size_t kLabel = 2, kBias = 3;  // operands; the derivative by the last is the last result
bool has_bias(const NodeView& node) { return node.input_count() > kBias; }

class LinearCrossEntropy final : public OperatorOf<LinearCrossEntropy> {
 public:
  std::string_view name() const override { return "linear-cross-entropy"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kLinearLossAttributes; }
  std::size_t min_inputs() const override { return 3; }
  std::size_t max_inputs() const override { return 4; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type hidden = node.input_type(0), words = node.input_type(1), label = node.input_type(2);
    const Symbol over = node.symbol(kLinearLossOver);
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect(node, 1, Elements::real));
    WEFT_TRY_STATUS(expect(node, 2, Elements::integer));
    WEFT_TRY_STATUS(expect_smoothing(node.real(kLinearLossSmoothing)));
    WEFT_TRY_STATUS(expect_between("slopes", node.integer(kLinearLossSlopes), 0, 1));
    if (words.dtype != hidden.dtype)
      return user_error(fmt::format("hidden and words differ in dtype: {}, {}", plan::name(hidden.dtype),
                                    plan::name(words.dtype)));
    if (has_bias(node)) {
      const plan::Type bias = node.input_type(kBias);
      if (bias.rank() != 1 || !bias.has(over) || bias.dtype != hidden.dtype)
        return user_error(
            fmt::format("operand 3 must have only the class index and the dtype of operand 0, found {}",
                        print(bias, node.graph().symbols())));
    }
    WEFT_TRY_STATUS(join_inputs(node));
    WEFT_TRY_STATUS(pick(hidden.dims, node.indices(kLinearLossInner), node));
    WEFT_TRY_STATUS(expect_over(node, 1, {&over, 1}));
    const std::vector<Symbol> of_words = indices_of(without(words.dims, {&over, 1}));
    if (!std::ranges::is_permutation(of_words, node.indices(kLinearLossInner)))
      return user_error(
          fmt::format("operand 1 must have only the class index and the inner indices, found {}",
                      print(words, node.graph().symbols())));
    const DimList rows = without(hidden.dims, node.indices(kLinearLossInner));
    if (hidden.has(over) || !std::ranges::is_permutation(rows, label.dims))
      return user_error(fmt::format("operand 2 must have a label for each row: expected {}, found {}",
                                    print(plan::Type{label.dtype, rows}, node.graph().symbols()),
                                    print(label, node.graph().symbols())));
    const plan::DType wide = log_sum_dtype(hidden.dtype);
    WEFT_TRY_STATUS(results.add(wide, {}));
    if (node.integer(kLinearLossSlopes) == 0) return {};
    WEFT_TRY_STATUS(results.add(hidden));
    WEFT_TRY_STATUS(results.add(wide, words.dims));
    return has_bias(node) ? results.add(wide, node.input_type(kBias).dims) : Status();
  }

  // A slice of the rows gives that slice of dhidden, and addends of the loss, dwords and dbias.
  plan::Signature signature(const NodeView& node) const override {
    const LinearLossShape of = classifying(node);
    return loops_by_name(node, [&](const plan::Loop& loop) -> Behaviour {
      if (std::ranges::find(of.rows, loop.index, &plan::Dim::index) == of.rows.end()) return kWhole;
      return {plan::Role::parallel, plan::Monoid::sum};
    });
  }

  // Three products, and cross-entropy and its gradient per logit; without derivatives one product.
  plan::Work work(const NodeView& node) const override {
    const LinearLossShape of = classifying(node);
    plan::Work work = bytes_of(node);
    const double logits = static_cast<double>(of.row_count()) * static_cast<double>(of.over.size);
    work.multiply_adds = (of.slopes ? 3 : 1) * logits * static_cast<double>(of.width());
    const double of_bias = has_bias(node) ? (of.slopes ? 2 : 1) : 0;
    work.flops = 2 * work.multiply_adds + ((of.slopes ? 14 : 8) + of_bias) * logits;
    return work;
  }

  Status gradient(Gradient& g) const override {
    WEFT_TRY_STATUS(only_through_first(g));
    const NodeView& node = g.node();
    if (node.integer(kLinearLossSlopes) == 0)
      return user_error("a loss with slopes=0 has no gradient: set slopes=1");
    Formula f(g.graph);
    const plan::ValueId dloss = g.of_result();
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (i == kLabel || !g.wants(i)) continue;
      const plan::ValueId slope = f.cast(node.result(i < kLabel ? i + 1 : i), node.result_type(0).dtype);
      g.set(i, f.cast(f(mul(), {slope, dloss}), node.input_type(i).dtype));
    }
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const LinearLossShape of = classifying(node);
    const auto h_rows = offsets_along(node.input_type(0), of.rows),
               h_inner = offsets_along(node.input_type(0), of.inner);
    const auto w_words = offsets_along(node.input_type(1), {&of.over, 1}),
               w_inner = offsets_along(node.input_type(1), of.inner);
    const auto places = offsets_along(node.input_type(2), of.rows);
    const auto& n = at.numbers;
    const T sure = n.from(1 - of.smoothing), each = n.from(of.smoothing / static_cast<double>(of.over.size));
    std::vector<T> logits(w_words.size());
    std::vector<std::int64_t> columns(w_words.size());
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = static_cast<std::int64_t>(c);
    for (std::size_t row = 0; row < h_rows.size(); ++row) {
      const std::int64_t label = n.to_integer(at.input(2).data[static_cast<std::size_t>(places[row])]);
      if (label < 0 || label >= of.over.size) continue;
      const T* h = at.input(0).data.data() + h_rows[row];
      for (std::size_t c = 0; c < logits.size(); ++c) {
        const T* w = at.input(1).data.data() + w_words[c];
        logits[c] = has_bias(node) ? at.input(kBias).data[c] : T();
        for (std::size_t e = 0; e < h_inner.size(); ++e) logits[c] += h[h_inner[e]] * w[w_inner[e]];
      }
      const auto [shift, total] = exponentials_of(n, logits.data(), columns);
      at.result(0).data[0] +=
          shift + n.apply(Function::log, total) - wanted_of(n, logits.data(), columns, label, of.smoothing);
      if (!of.slopes) continue;
      T* dh = at.result(1).data.data() + h_rows[row];
      for (std::size_t c = 0; c < logits.size(); ++c) {
        T slope = n.divide(n.apply(Function::exp, logits[c] - shift), total) - each;
        if (static_cast<std::int64_t>(c) == label) slope -= sure;
        const T* w = at.input(1).data.data() + w_words[c];
        T* dw = at.result(2).data.data() + w_words[c];
        if (has_bias(node)) at.result(3).data[c] += slope;
        for (std::size_t e = 0; e < h_inner.size(); ++e) {
          dh[h_inner[e]] += slope * w[w_inner[e]];
          dw[w_inner[e]] += slope * h[h_inner[e]];
        }
      }
    }
  }
};

}  // namespace

LinearLossShape classifying(const NodeView& node) {
  const plan::Type hidden = node.input_type(0), words = node.input_type(1);
  LinearLossShape of;
  of.over = {node.symbol(kLinearLossOver), words.size_of(node.symbol(kLinearLossOver))};
  of.rows = without(hidden.dims, node.indices(kLinearLossInner));
  for (const Symbol index : node.indices(kLinearLossInner))
    of.inner.push_back({index, hidden.size_of(index)});
  of.smoothing = node.real(kLinearLossSmoothing);
  of.slopes = node.integer(kLinearLossSlopes) != 0;
  return of;
}

const Operator& linear_cross_entropy() {
  static const LinearCrossEntropy op;
  return op;
}

}  // namespace weft::ops
