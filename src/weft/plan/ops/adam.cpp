// adam, adamw: gradient descent by running means of the gradient and of its square.
//
//   m' = beta1 * m + (1 - beta1) * g          v' = beta2 * v + (1 - beta2) * g^2
//   update = (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon)         t = step + 1
//   adam    w' = w - lr * update
//   adamw   w' = w - lr * (update + decay * w)      decoupled weight decay
//
// Operands: w, g, m, v, step (one integer, initially 0), and optionally the rate, a schedule's
// factor on lr. Results: w', m', v'. Kingma and Ba, "Adam", ICLR 2015; Loshchilov and Hutter,
// "Decoupled weight decay regularization", ICLR 2019.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/optimizers.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 5> kAdamAttributes = {
    {{"lr", AttributeKind::real, false, 1e-3},
     {"beta1", AttributeKind::real, false, 0.9},
     {"beta2", AttributeKind::real, false, 0.999},
     {"epsilon", AttributeKind::real, false, 1e-8},
     {"decay", AttributeKind::real, false, 0.01}}};
constexpr std::size_t kAdamLr = 0, kAdamBeta1 = 1, kAdamBeta2 = 2, kAdamEpsilon = 3, kAdamDecay = 4;

class AdamOperator final : public OperatorOf<AdamOperator> {
 public:
  explicit AdamOperator(bool decays) : decays_(decays) {}

  std::string_view name() const override { return decays_ ? "adamw" : "adam"; }
  std::span<const plan::AttributeSpec> attributes() const override {
    return std::span(kAdamAttributes).first(decays_ ? kAdamAttributes.size() : kAdamDecay);
  }
  std::size_t min_inputs() const override { return 5; }
  std::size_t max_inputs() const override { return 6; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    for (const std::size_t i : {1u, 2u, 3u}) WEFT_TRY_STATUS(same_type(node, 0, i));
    WEFT_TRY_STATUS(expect_step(node, 4));
    WEFT_TRY_STATUS(expect_rate(node, 5));
    for (int k = 0; k < 3; ++k) WEFT_TRY_STATUS(results.add(node.input_type(0)));
    return {};
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return flops_each(node, decays_ ? 15 : 13); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const auto& n = at.numbers;
    const T one = n.from(1), epsilon = n.from(node.real(kAdamEpsilon));
    T lr = n.from(node.real(kAdamLr));
    if (at.input_count() > 5) lr *= at.input(5).data[0];
    const T beta1 = n.from(node.real(kAdamBeta1)), beta2 = n.from(node.real(kAdamBeta2));
    const T decay = decays_ ? n.from(node.real(kAdamDecay)) : T();
    const T times = at.input(4).data[0] + one;
    const T warm1 = one - n.power(beta1, times), warm2 = one - n.power(beta2, times);
    for (std::size_t i = 0; i < at.input(0).data.size(); ++i) {
      const T w = at.input(0).data[i], g = at.input(1).data[i];
      const T m = beta1 * at.input(2).data[i] + (one - beta1) * g;
      const T v = beta2 * at.input(3).data[i] + (one - beta2) * g * g;
      const T deviation = n.apply(Function::sqrt, n.divide(v, warm2)) + epsilon;
      const T update = n.divide(n.divide(m, warm1), deviation);
      at.result(0).data[i] = w - lr * (update + decay * w);
      at.result(1).data[i] = m;
      at.result(2).data[i] = v;
    }
  }

 private:
  bool decays_;
};

}  // namespace

const Operator& adam() {
  static const AdamOperator op(false);
  return op;
}

const Operator& adamw() {
  static const AdamOperator op(true);
  return op;
}

}  // namespace weft::ops
