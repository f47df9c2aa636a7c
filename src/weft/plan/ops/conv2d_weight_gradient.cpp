// conv2d-weight-gradient: from the gradient of a convolution's result to that of its weight.
//
//   dw[o, i, r, q] = sum over b, h', w' of  dy[b, o, h', w'] * x[b, c, h'*stride + r - padding, ..]
//
// `type` is the weight's.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {
namespace {

using plan::NodeView;

class Conv2dWeightGradient final : public OperatorOf<Conv2dWeightGradient> {
 public:
  std::string_view name() const override { return "conv2d-weight-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kGradientSpecs; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY(conv, convolution(node, node.input_type(1), node.type(kGradientType)));
    WEFT_TRY_STATUS(expect_result_gradient(node, 0, conv.result));
    return results.add(node.input_type(0).dtype, node.type(kGradientType).dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::span<const plan::Dim> x = node.input_type(1).dims, w = node.result_type(0).dims;
    const bool grouped = window_of(node).groups > 1;
    plan::Signature signature;
    signature.loops = {loop_at(x[0], kSummed, {0, 0}, {-1}),
                       loop_at(w[0], grouped ? kWhole : kParallel, {1, -1}, {0}),
                       loop_at(w[1], grouped ? kWhole : kParallel, {-1, 1}, {1}),
                       loop_at(x[2], kWhole, {2, 2}, {-1}),
                       loop_at(x[3], kWhole, {3, 3}, {-1}),
                       loop_at(w[2], kWhole, {-1, -1}, {2}),
                       loop_at(w[3], kWhole, {-1, -1}, {3})};
    return signature;
  }

  plan::Work work(const NodeView& node) const override {
    return work_of(node, *convolution(node, node.input_type(1), node.type(kGradientType)));
  }

  // Linear in both operands: the derivatives are the convolution itself and its other gradient.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    if (g.wants(0)) {
      WEFT_TRY(value,
               g.graph.add_value(conv2d(), std::array{node.input(1), g.of_result()}, attributes_like(node)));
      g.set(0, value);
    }
    if (g.wants(1)) {
      WEFT_TRY(value, g.graph.add_value(conv2d_input_gradient(), std::array{node.input(0), g.of_result()},
                                        attributes_like(node, g.graph.value(node.input(1)).type)));
      g.set(1, value);
    }
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T *dy = at.input(0).data.data(), *x = at.input(1).data.data();
    T* dw = at.result(0).data.data();
    visit_products(*convolution(at.node(), at.node().input_type(1), at.node().result_type(0)),
                   [&](auto in_x, auto in_w, auto in_y) { dw[in_w] += dy[in_y] * x[in_x]; });
  }
};

}  // namespace

const Operator& conv2d_weight_gradient() {
  static const Conv2dWeightGradient op;
  return op;
}

}  // namespace weft::ops
