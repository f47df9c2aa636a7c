// avg-pool-gradient: spreads every window's gradient evenly over its elements.
//
//   dx[.., h, w] = 1/size^2 * sum of dy[.., h', w'] over the windows that contain (h, w)
//
// `type` is that of x.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/pooling.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 7> kAvgPoolGradientAttributes = {
    {kPoolSizeSpec,
     kPoolStrideSpec,
     kPoolPaddingSpec,
     {"type", plan::AttributeKind::type},
     kPoolPaddingWSpec,
     kPoolHighSpec,
     kPoolWideSpec}};
constexpr std::size_t kAvgPoolGradientType = 3;

class AvgPoolGradient final : public OperatorOf<AvgPoolGradient> {
 public:
  std::string_view name() const override { return "avg-pool-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAvgPoolGradientAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY(pool, pooling(node, node.type(kAvgPoolGradientType)));
    WEFT_TRY_STATUS(expect_result_gradient(node, 0, pool.result));
    return results.add(node.input_type(0).dtype, node.type(kAvgPoolGradientType).dims);
  }

  plan::Signature signature(const NodeView& node) const override { return plane_loops(node); }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = static_cast<double>(node.input_type(0).elements()) *
                 (*pooling(node, node.type(kAvgPoolGradientType))).window_points();
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId dx = g.of_result();
    WEFT_TRY(value, g.graph.add_value(avg_pool(), {&dx, 1}, pool_attributes_like(node)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Pooling pool = *pooling(at.node(), at.node().result_type(0));
    const T points = at.numbers.from(pool.window_points());
    visit_windows(pool, [&](std::int64_t in_y, std::span<const std::int64_t> window) {
      const T share = at.numbers.divide(at.input(0).data[in_y], points);
      for (const std::int64_t in_x : window) at.result(0).data[in_x] += share;
    });
  }
};

}  // namespace

const Operator& avg_pool_gradient() {
  static const AvgPoolGradient op;
  return op;
}

}  // namespace weft::ops
