// avg-pool: the mean of every window.
//
//   y[.., h', w'] = 1/size^2 * sum over r, q < size of  x[.., h'*stride + r - padding, ..]
//
// over the last two indices of x. The padding counts as zeros: every window divides by its full
// size.
#include <array>

#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/pooling.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 6> kAvgPoolAttributes = {
    kPoolSizeSpec, kPoolStrideSpec, kPoolPaddingSpec, kPoolPaddingWSpec, kPoolHighSpec, kPoolWideSpec};

class AvgPool final : public OperatorOf<AvgPool> {
 public:
  std::string_view name() const override { return "avg-pool"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAvgPoolAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY(pool, pooling(node, node.input_type(0)));
    return results.add(node.input_type(0).dtype, pool.result);
  }

  plan::Signature signature(const NodeView& node) const override { return plane_loops(node); }

  plan::Work work(const NodeView& node) const override {
    return flops_each(node, (*pooling(node, node.input_type(0))).window_points());
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId dy = g.of_result();
    WEFT_TRY(value, g.graph.add_value(avg_pool_gradient(), {&dy, 1},
                                      pool_attributes_like(node, g.graph.value(node.input(0)).type)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T* x = at.input(0).data.data();
    const Pooling pool = *pooling(at.node(), at.node().input_type(0));
    const T points = at.numbers.from(pool.window_points());
    visit_windows(pool, [&](std::int64_t in_y, std::span<const std::int64_t> window) {
      T total = T();
      for (const std::int64_t in_x : window) total += x[in_x];
      at.result(0).data[in_y] = at.numbers.divide(total, points);
    });
  }
};

}  // namespace

const Operator& avg_pool() {
  static const AvgPool op;
  return op;
}

}  // namespace weft::ops
