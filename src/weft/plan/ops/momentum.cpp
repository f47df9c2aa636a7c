// momentum: gradient descent with momentum (heavy ball).
//
//   m' = momentum * m + g
//   w' = w - lr * rate * m'
//
// Operands: w, g, m, and optionally the rate of a schedule. Results: w', m'.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/optimizers.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kMomentumAttributes = {
    {{"lr", AttributeKind::real}, {"momentum", AttributeKind::real, false, 0.9}}};
constexpr std::size_t kMomentumLr = 0, kMomentum = 1;

class Momentum final : public OperatorOf<Momentum> {
 public:
  std::string_view name() const override { return "momentum"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kMomentumAttributes; }
  std::size_t min_inputs() const override { return 3; }
  std::size_t max_inputs() const override { return 4; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_type(node, 0, 1));
    WEFT_TRY_STATUS(same_type(node, 0, 2));
    WEFT_TRY_STATUS(expect_rate(node, 3));
    WEFT_TRY_STATUS(results.add(node.input_type(0)));
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return flops_each(node, 4); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    T lr = at.numbers.from(at.node().real(kMomentumLr));
    const T mu = at.numbers.from(at.node().real(kMomentum));
    if (at.input_count() > 3) lr *= at.input(3).data[0];
    for (std::size_t i = 0; i < at.input(0).data.size(); ++i) {
      const T m = mu * at.input(2).data[i] + at.input(1).data[i];
      at.result(0).data[i] = at.input(0).data[i] - lr * m;
      at.result(1).data[i] = m;
    }
  }
};

}  // namespace

const Operator& momentum() {
  static const Momentum op;
  return op;
}

}  // namespace weft::ops
