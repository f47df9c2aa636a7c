// max-pool-gradient: passes every window's gradient to its largest element, the first if tied.
//
//   dx[.., h, w] = sum of dy[.., h', w'] over the windows whose largest element is x[.., h, w]
//
// Operands: dy, x.
#include <array>

#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/pooling.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 6> kMaxPoolGradientAttributes = {
    kPoolSizeSpec, kPoolStrideSpec, kPoolPaddingSpec, kPoolPaddingWSpec, kPoolHighSpec, kPoolWideSpec};

class MaxPoolGradient final : public OperatorOf<MaxPoolGradient> {
 public:
  std::string_view name() const override { return "max-pool-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kMaxPoolGradientAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY(pool, pooling(node, node.input_type(1)));
    WEFT_TRY_STATUS(expect_result_gradient(node, 0, pool.result));
    return results.add(node.input_type(1));
  }

  plan::Signature signature(const NodeView& node) const override { return plane_loops(node); }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = static_cast<double>(node.input_type(0).elements()) *
                 (*pooling(node, node.input_type(1))).window_points();
    return work;
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T *dy = at.input(0).data.data(), *x = at.input(1).data.data();
    visit_windows(*pooling(at.node(), at.node().input_type(1)),
                  [&](std::int64_t in_y, std::span<const std::int64_t> window) {
                    std::int64_t largest = window[0];
                    for (const std::int64_t in_x : window)
                      if (at.numbers.less(x[largest], x[in_x])) largest = in_x;
                    at.result(0).data[largest] += dy[in_y];
                  });
  }
};

}  // namespace

const Operator& max_pool_gradient() {
  static const MaxPoolGradient op;
  return op;
}

}  // namespace weft::ops
