// attention: for each query a mean of the values, weighted by the softmax of query-key scores.
//
//   score[r, t] = scale / divisor * sum over `inner` of q[r, ..] k[r, t, ..]
//   score       = -inf where the mask is false; causal: where key t comes after the query,
//                 keys + t > begin + s; window=w: where the key is w or more before the query
//   y[r, f]     = sum over t of softmax(score over t)[r, t] v[r, t, f]
//   log-sum[r]  = log of the sum over t of exp(score[r, t]), kept for the gradient
//
// with r the remaining indices of q. Equal to contract, select, softmax and contract, but scores
// exist only tile by tile: memory grows linearly with the sequence length. k and v may lack indices
// of q, such as the heads that share them.
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/normalization.h"
#include "weft/plan/ops/sequences.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::size_t kAttentionMask = 3;

class Attention final : public OperatorOf<Attention> {
 public:
  std::string_view name() const override { return "attention"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAttentionAttributes; }
  std::size_t min_inputs() const override { return 3; }
  std::size_t max_inputs() const override { return 4; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY(of, check_attention_geometry(node, kAttentionMask));
    const plan::DType dtype = node.input_type(0).dtype;
    WEFT_TRY_STATUS(results.add(dtype, attention_result_dims(of)));
    return results.add(log_sum_dtype(dtype), of.rows);
  }

  // Rows are independent of each other. Keys are reduced, but their addends are combined by
  // log-sums, which no monoid of numbers expresses.
  plan::Signature signature(const NodeView& node) const override {
    const AttentionGeometry of = attending(node);
    return loops_by_name(node, [&](const plan::Loop& loop) {
      if (loop.index == of.along.index) return of.has_places() ? kPlaced : kParallel;
      const bool is_row = std::ranges::find(of.rows, loop.index, &plan::Dim::index) != of.rows.end();
      return is_row ? kParallel : kWhole;
    });
  }

  // Per pair of query and key: two products, and one element of a softmax.
  plan::Work work(const NodeView& node) const override {
    const AttentionGeometry of = attending(node);
    plan::Work work = bytes_of(node);
    const double pairs = of.pairs();
    work.multiply_adds = pairs * static_cast<double>(points_of(of.inner) + points_of(of.values));
    work.flops = 2 * work.multiply_adds + 12 * pairs;
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY_STATUS(only_through_first(g));
    std::vector<plan::ValueId> operands = {node.input(0),  node.input(1),  node.input(2),
                                           node.result(0), node.result(1), g.of_result()};
    if (kAttentionMask < node.input_count()) operands.push_back(node.input(kAttentionMask));
    const std::vector<Symbol> inner(node.indices(kAttentionInner).begin(),
                                    node.indices(kAttentionInner).end());
    const std::array<plan::AttributeValue, 9> attributes = {
        node.symbol(kAttentionOver), node.symbol(kAttentionAlong),  std::span<const Symbol>(inner),
        node.real(kAttentionScale),  node.real(kAttentionDivisor),  node.integer(kAttentionCausal),
        node.real(kAttentionWindow), node.integer(kAttentionBegin), node.integer(kAttentionKeys)};
    WEFT_TRY(made, g.graph.add(attention_gradient(), operands, attributes));
    for (std::size_t i = 0; i < 3; ++i)
      if (g.wants(i)) g.set(i, g.graph.result(made, i));
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const AttentionGeometry of = attending(at.node());
    if (of.row_count() == 0 || of.over.size == 0) return;
    Scores<T> scores(at, of, kAttentionMask);
    const auto y_rows = offsets_along(at.node().result_type(0), of.rows);
    const auto y_values = offsets_along(at.node().result_type(0), of.values);
    for (std::size_t row = 0; row < y_rows.size(); ++row) {
      scores.find(row);
      at.result(1).data[row] = scores.share();
      T* y = at.result(0).data.data() + y_rows[row];
      const T* v = at.input(2).data.data() + scores.v_rows[row];
      for (std::size_t t = 0; t < scores.scores().size(); ++t)
        for (std::size_t f = 0; f < y_values.size(); ++f)
          y[y_values[f]] += scores.scores()[t] * v[scores.v_keys[t] + scores.v_values[f]];
    }
  }
};

}  // namespace

const Operator& attention() {
  static const Attention op;
  return op;
}

}  // namespace weft::ops
