// layer-norm: every row shifted and scaled to mean 0 and variance 1.
//
//   y = (x - mean) * rstd,   rstd = 1 / sqrt(variance + epsilon)
//
// Mean and biased variance are taken over the indices `over`. Results: y, and rstd for the
// gradient, in at least f32.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/normalization.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kLayerNormAttributes = {
    {{"over", AttributeKind::indices}, {"epsilon", AttributeKind::real, false, 1e-5}}};
constexpr std::size_t kLayerNormOver = 0, kLayerNormEpsilon = 1;

class LayerNorm final : public OperatorOf<LayerNorm> {
 public:
  std::string_view name() const override { return "layer-norm"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kLayerNormAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect_over(node, 0, node.indices(kLayerNormOver)));
    WEFT_TRY_STATUS(results.add(x));
    return results.add(statistics_dtype(x.dtype), without(x.dims, node.indices(kLayerNormOver)));
  }

  plan::Signature signature(const NodeView& node) const override {
    return parallel_loops_except(node, node.indices(kLayerNormOver));
  }

  // An element is summed, centered, squared, summed again, centered and scaled.
  plan::Work work(const NodeView& node) const override { return flops_each(node, 6); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY_STATUS(only_through_first(g));
    Formula f(g.graph);
    g.set(0, centered_gradient(f, node.input_type(0), node.indices(kLayerNormOver), g.of_result(),
                               node.result(0), node.result(1)));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Rows rows(at.node().input_type(0), at.node().indices(kLayerNormOver));
    const T epsilon = at.numbers.from(at.node().real(kLayerNormEpsilon));
    for (std::size_t row = 0; row < rows.starts.size(); ++row) {
      const T* x = at.input(0).data.data() + rows.starts[row];
      T* y = at.result(0).data.data() + rows.starts[row];
      const Moments<T> of = moments(at.numbers, x, rows.columns);
      const T rstd = at.numbers.apply(Function::rsqrt, of.variance + epsilon);
      for (const std::int64_t column : rows.columns) y[column] = (x[column] - of.mean) * rstd;
      at.result(1).data[row] = rstd;
    }
  }
};

}  // namespace

const Operator& layer_norm() {
  static const LayerNorm op;
  return op;
}

}  // namespace weft::ops
