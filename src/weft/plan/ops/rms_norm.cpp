// rms-norm: every row scaled to a mean square of 1.
//
//   y = x * rstd,   rstd = 1 / sqrt(mean over `over` of x^2 + epsilon)
//
// Results: y, and rstd for the gradient, in at least f32.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/normalization.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kRmsNormAttributes = {
    {{"over", AttributeKind::indices}, {"epsilon", AttributeKind::real, false, 1e-5}}};
constexpr std::size_t kRmsNormOver = 0, kRmsNormEpsilon = 1;

class RmsNorm final : public OperatorOf<RmsNorm> {
 public:
  std::string_view name() const override { return "rms-norm"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kRmsNormAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect_over(node, 0, node.indices(kRmsNormOver)));
    WEFT_TRY_STATUS(results.add(x));
    return results.add(statistics_dtype(x.dtype), without(x.dims, node.indices(kRmsNormOver)));
  }

  plan::Signature signature(const NodeView& node) const override {
    return parallel_loops_except(node, node.indices(kRmsNormOver));
  }

  // An element is squared, summed and scaled.
  plan::Work work(const NodeView& node) const override { return flops_each(node, 3); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY_STATUS(only_through_first(g));
    Formula f(g.graph);
    g.set(0, scaled_gradient(f, node.input_type(0), node.indices(kRmsNormOver), g.of_result(), node.result(0),
                             node.result(1)));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Rows rows(at.node().input_type(0), at.node().indices(kRmsNormOver));
    const T epsilon = at.numbers.from(at.node().real(kRmsNormEpsilon));
    const T count = at.numbers.from_integer(static_cast<std::int64_t>(rows.columns.size()));
    for (std::size_t row = 0; row < rows.starts.size(); ++row) {
      const T* x = at.input(0).data.data() + rows.starts[row];
      T* y = at.result(0).data.data() + rows.starts[row];
      T squares = T();
      for (const std::int64_t column : rows.columns) squares += x[column] * x[column];
      const T rstd = at.numbers.apply(Function::rsqrt, at.numbers.divide(squares, count) + epsilon);
      for (const std::int64_t column : rows.columns) y[column] = x[column] * rstd;
      at.result(1).data[row] = rstd;
    }
  }
};

}  // namespace

const Operator& rms_norm() {
  static const RmsNorm op;
  return op;
}

}  // namespace weft::ops
