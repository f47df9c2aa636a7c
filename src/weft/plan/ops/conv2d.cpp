// conv2d: a window of weights slid over an image.
//
//   y[b, o, h', w'] = sum over i, r, q of  x[b, c, h'*stride + r - padding, ..] * w[o, i, r, q]
//
// x is [b, c, h, w] and w is [o, i, r, q] by position. Outside the image x is zero; padding_w
// applies left and right if it differs from above and below. With groups, channels and outputs are
// divided into equal runs, and outputs see only the channels of their run. b, o and the channels
// may be sliced, channels giving addends; with groups only b. Rows and columns may be sliced if
// borders are fetched first (sliding.h).
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 6> kConv2dAttributes = {kStrideSpec,   kPaddingSpec, kGroupsSpec,
                                                                  kPaddingWSpec, kHighSpec,    kWideSpec};

class Conv2d final : public OperatorOf<Conv2d> {
 public:
  std::string_view name() const override { return "conv2d"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kConv2dAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY(conv, convolution(node, node.input_type(0), node.input_type(1)));
    return results.add(node.input_type(0).dtype, conv.result);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::span<const plan::Dim> x = node.input_type(0).dims, w = node.input_type(1).dims;
    const bool grouped = window_of(node).groups > 1;
    plan::Signature signature;
    signature.loops = {loop_at(x[0], kParallel, {0, -1}, {0}),
                       loop_at(w[0], grouped ? kWhole : kParallel, {-1, 0}, {1}),
                       loop_at(x[1], grouped ? kWhole : kSummed, {1, 1}, {-1}),
                       loop_at(x[2], kWhole, {2, -1}, {2}),
                       loop_at(x[3], kWhole, {3, -1}, {3}),
                       loop_at(w[2], kWhole, {-1, 2}, {-1}),
                       loop_at(w[3], kWhole, {-1, 3}, {-1})};
    return signature;
  }

  plan::Work work(const NodeView& node) const override {
    return work_of(node, *convolution(node, node.input_type(0), node.input_type(1)));
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId x = node.input(0), w = node.input(1), dy = g.of_result();
    const auto add = [&](const Operator& op, plan::ValueId other, plan::ValueId of) {
      return g.graph.add_value(op, std::array{dy, other}, attributes_like(node, g.graph.value(of).type));
    };
    if (g.wants(0)) {
      WEFT_TRY(dx, add(conv2d_input_gradient(), w, x));
      g.set(0, dx);
    }
    if (g.wants(1)) {
      WEFT_TRY(dw, add(conv2d_weight_gradient(), x, w));
      g.set(1, dw);
    }
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T *x = at.input(0).data.data(), *w = at.input(1).data.data();
    T* y = at.result(0).data.data();
    visit_products(*convolution(at.node(), at.node().input_type(0), at.node().input_type(1)),
                   [&](auto in_x, auto in_w, auto in_y) { y[in_y] += x[in_x] * w[in_w]; });
  }
};

}  // namespace

const Operator& conv2d() {
  static const Conv2d op;
  return op;
}

}  // namespace weft::ops
