// conv2d-input-gradient: from the gradient of a convolution's result to that of its image.
//
//   dx[b, c, h, w] = sum over o, r, q of  dy[b, o, h', w'] * w[o, i, r, q]
//
// over the windows (h', w') that contain (h, w) at (r, q). `type` is the image's.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {
namespace {

using plan::NodeView;

class Conv2dInputGradient final : public OperatorOf<Conv2dInputGradient> {
 public:
  std::string_view name() const override { return "conv2d-input-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kGradientSpecs; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY(conv, convolution(node, node.type(kGradientType), node.input_type(1)));
    WEFT_TRY_STATUS(expect_result_gradient(node, 0, conv.result));
    return results.add(node.input_type(0).dtype, node.type(kGradientType).dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::span<const plan::Dim> x = node.result_type(0).dims, w = node.input_type(1).dims;
    const bool grouped = window_of(node).groups > 1;
    plan::Signature signature;
    signature.loops = {loop_at(x[0], kParallel, {0, -1}, {0}),
                       loop_at(w[0], grouped ? kWhole : kSummed, {1, 0}, {-1}),
                       loop_at(x[1], grouped ? kWhole : kParallel, {-1, 1}, {1}),
                       loop_at(x[2], kWhole, {2, -1}, {2}),
                       loop_at(x[3], kWhole, {3, -1}, {3}),
                       loop_at(w[2], kWhole, {-1, 2}, {-1}),
                       loop_at(w[3], kWhole, {-1, 3}, {-1})};
    return signature;
  }

  plan::Work work(const NodeView& node) const override {
    return work_of(node, *convolution(node, node.type(kGradientType), node.input_type(1)));
  }

  // Linear in both operands: the derivatives are the convolution itself and its other gradient.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    if (g.wants(0)) {
      WEFT_TRY(value,
               g.graph.add_value(conv2d(), std::array{g.of_result(), node.input(1)}, attributes_like(node)));
      g.set(0, value);
    }
    if (g.wants(1)) {
      WEFT_TRY(value, g.graph.add_value(conv2d_weight_gradient(), std::array{node.input(0), g.of_result()},
                                        attributes_like(node, g.graph.value(node.input(1)).type)));
      g.set(1, value);
    }
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T *dy = at.input(0).data.data(), *w = at.input(1).data.data();
    T* dx = at.result(0).data.data();
    visit_products(*convolution(at.node(), at.node().result_type(0), at.node().input_type(1)),
                   [&](auto in_x, auto in_w, auto in_y) { dx[in_x] += dy[in_y] * w[in_w]; });
  }
};

}  // namespace

const Operator& conv2d_input_gradient() {
  static const Conv2dInputGradient op;
  return op;
}

}  // namespace weft::ops
