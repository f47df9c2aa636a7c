// max-pool: the largest element of every window.
//
//   y[.., h', w'] = max over r, q < size of  x[.., h'*stride + r - padding, w'*stride + q - padding]
//
// over the last two indices of x. Padding is ignored, so it is never the maximum.
#include <array>

#include "weft/plan/ops/images.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/pooling.h"

namespace weft::ops {
namespace {

using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 6> kMaxPoolAttributes = {
    kPoolSizeSpec, kPoolStrideSpec, kPoolPaddingSpec, kPoolPaddingWSpec, kPoolHighSpec, kPoolWideSpec};

class MaxPool final : public OperatorOf<MaxPool> {
 public:
  std::string_view name() const override { return "max-pool"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kMaxPoolAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::number));
    WEFT_TRY(pool, pooling(node, node.input_type(0)));
    return results.add(node.input_type(0).dtype, pool.result);
  }

  plan::Signature signature(const NodeView& node) const override { return plane_loops(node); }

  plan::Work work(const NodeView& node) const override {
    return flops_each(node, (*pooling(node, node.input_type(0))).window_points());
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const std::array<plan::ValueId, 2> operands = {g.of_result(), node.input(0)};
    WEFT_TRY(value, g.graph.add_value(max_pool_gradient(), operands, pool_attributes_like(node)));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const T* x = at.input(0).data.data();
    visit_windows(*pooling(at.node(), at.node().input_type(0)),
                  [&](std::int64_t in_y, std::span<const std::int64_t> window) {
                    T largest = x[window[0]];
                    for (const std::int64_t in_x : window) largest = at.numbers.max(largest, x[in_x]);
                    at.result(0).data[in_y] = largest;
                  });
  }
};

}  // namespace

const Operator& max_pool() {
  static const MaxPool op;
  return op;
}

}  // namespace weft::ops
