// attention-gradient: from the gradient of attention's result to those of its queries, keys and
// values.
//
//   p[r, t]  = exp(score[r, t] - log-sum[r]), zero where the score is masked
//   dp[r, t] = sum over f of dy[r, f] v[r, t, f]
//   ds[r, t] = scale / divisor * p (dp - sum over f of dy[r, f] y[r, f])
//   dq[r, e] = sum over t of ds k
//   dk[t, e] = sum over r of ds q
//   dv[t, f] = sum over r of p dy
//
// Operands 3 and 4, y and log-sum, are attention's results. With them p is recomputed, the sum of
// dy y replaces that of p dp, and a kernel needs only the current tile of scores.
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/sequences.h"

#include <fmt/format.h>

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::size_t kAttentionGradientMask = 6;

class AttentionGradient final : public OperatorOf<AttentionGradient> {
 public:
  std::string_view name() const override { return "attention-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAttentionAttributes; }
  std::size_t min_inputs() const override { return 6; }
  std::size_t max_inputs() const override { return 7; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY(of, check_attention_geometry(node, kAttentionGradientMask));
    const plan::DType dtype = node.input_type(0).dtype;
    const DimList attended = attention_result_dims(of);
    for (const std::size_t i : {3u, 5u})
      if (node.input_type(i).dtype != dtype || !std::ranges::equal(node.input_type(i).dims, attended))
        return user_error(
            fmt::format("operand {} must have the type of attention's result: expected {}, found {}", i,
                        print(plan::Type{dtype, attended}, node.graph().symbols()),
                        print(node.input_type(i), node.graph().symbols())));
    const plan::Type sums{log_sum_dtype(dtype), of.rows};
    if (node.input_type(4).dtype != sums.dtype || !std::ranges::equal(node.input_type(4).dims, sums.dims))
      return user_error(fmt::format("operand 4 must be a number for each row: expected {}, found {}",
                                    print(sums, node.graph().symbols()),
                                    print(node.input_type(4), node.graph().symbols())));
    for (std::size_t i = 0; i < 3; ++i) WEFT_TRY_STATUS(results.add(node.input_type(i)));
    return {};
  }

  // A slice of the queries, or of heads that share keys, gives that slice of dq and addends of dk
  // and dv.
  plan::Signature signature(const NodeView& node) const override {
    const AttentionGeometry of = attending(node);
    return loops_by_name(node, [&](const plan::Loop& loop) -> Behaviour {
      if (std::ranges::find(of.rows, loop.index, &plan::Dim::index) == of.rows.end()) return kWhole;
      const bool kept = std::ranges::none_of(loop.results, [](int dim) { return dim < 0; });
      return {plan::Role::parallel, kept ? plan::Monoid::none : plan::Monoid::sum,
              loop.index == of.along.index && of.has_places()};
    });
  }

  // The scores again, and four products.
  plan::Work work(const NodeView& node) const override {
    const AttentionGeometry of = attending(node);
    plan::Work work = bytes_of(node);
    const double pairs = of.pairs();
    work.multiply_adds = pairs * static_cast<double>(3 * points_of(of.inner) + 2 * points_of(of.values));
    work.flops = 2 * work.multiply_adds + 14 * pairs;
    return work;
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const AttentionGeometry of = attending(at.node());
    if (of.row_count() == 0 || of.over.size == 0) return;
    Scores<T> p(at, of, kAttentionGradientMask);
    const auto dy_rows = offsets_along(at.node().input_type(5), of.rows);
    const auto dy_values = offsets_along(at.node().input_type(5), of.values);
    const auto y_rows = offsets_along(at.node().input_type(3), of.rows);
    const auto y_values = offsets_along(at.node().input_type(3), of.values);
    const auto sum_rows = offsets_along(at.node().input_type(4), of.rows);
    for (std::size_t row = 0; row < dy_rows.size(); ++row) {
      p.find(row);
      const T* q = at.input(0).data.data() + p.q_rows[row];
      const T* k = at.input(1).data.data() + p.k_rows[row];
      const T* v = at.input(2).data.data() + p.v_rows[row];
      const T* dy = at.input(5).data.data() + dy_rows[row];
      T* dq = at.result(0).data.data() + p.q_rows[row];
      T* dk = at.result(1).data.data() + p.k_rows[row];
      T* dv = at.result(2).data.data() + p.v_rows[row];
      T along_p = T();
      for (std::size_t f = 0; f < dy_values.size(); ++f)
        along_p += dy[dy_values[f]] * at.input(3).data[static_cast<std::size_t>(y_rows[row] + y_values[f])];
      const T log_sum = at.input(4).data[static_cast<std::size_t>(sum_rows[row])];
      for (std::size_t t = 0; t < p.k_keys.size(); ++t) {
        if (p.masked()[t] != 0) continue;
        const T share = p.probability(p.scores()[t], log_sum);
        T dp = T();
        for (std::size_t f = 0; f < dy_values.size(); ++f) {
          dp += dy[dy_values[f]] * v[p.v_keys[t] + p.v_values[f]];
          dv[p.v_keys[t] + p.v_values[f]] += share * dy[dy_values[f]];
        }
        const T ds = p.scaled(share * (dp - along_p));
        for (std::size_t e = 0; e < p.q_inner.size(); ++e) {
          dq[p.q_inner[e]] += ds * k[p.k_keys[t] + p.k_inner[e]];
          dk[p.k_keys[t] + p.k_inner[e]] += ds * q[p.q_inner[e]];
        }
      }
    }
  }
};

}  // namespace

const Operator& attention_gradient() {
  static const AttentionGradient op;
  return op;
}

}  // namespace weft::ops
