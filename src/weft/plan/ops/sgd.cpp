// sgd: plain gradient descent.
//
//   w' = w - lr * rate * g
//
// Operands: w, g, and optionally the rate of a schedule.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/optimizers.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kSgdAttributes = {{{"lr", AttributeKind::real}}};
constexpr std::size_t kSgdLr = 0;

class Sgd final : public OperatorOf<Sgd> {
 public:
  std::string_view name() const override { return "sgd"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSgdAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 3; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_type(node, 0, 1));
    WEFT_TRY_STATUS(expect_rate(node, 2));
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return flops_each(node, 2); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    T lr = at.numbers.from(at.node().real(kSgdLr));
    if (at.input_count() > 2) lr *= at.input(2).data[0];
    for (std::size_t i = 0; i < at.input(0).data.size(); ++i)
      at.result(0).data[i] = at.input(0).data[i] - lr * at.input(1).data[i];
  }
};

}  // namespace

const Operator& sgd() {
  static const Sgd op;
  return op;
}

}  // namespace weft::ops
