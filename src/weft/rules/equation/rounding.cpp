#include "weft/rules/equation/rounding.h"

#include "weft/plan/ops/operators.h"

namespace weft::equation {
namespace {

constexpr int kRoundingDraws = 2;

struct SideArithmetic {
  double products = 0, quotients = 0;

  friend bool operator==(const SideArithmetic&, const SideArithmetic&) = default;
};

SideArithmetic arithmetic_of_side(const EquationSide& side) {
  SideArithmetic total;
  for (const plan::Graph* graph : side.plans())
    for (std::size_t id = 0; id < graph->node_count(); ++id) {
      const plan::NodeView node = graph->view(plan::NodeId(id));
      const plan::Operator* op = &node.op();
      if (op == &ops::contract() || op == &ops::conv2d()) total.products += op->work(node).multiply_adds;
      if (op == &ops::mul()) total.products += static_cast<double>(node.result_type(0).elements());
      if (op == &ops::div() || op == &ops::avg_pool())
        total.quotients += static_cast<double>(node.result_type(0).elements());
    }
  return total;
}

bool same_bits(const std::vector<Held<double>>& left, const std::vector<Held<double>>& right) {
  for (std::size_t k = 0; k < left.size(); ++k)
    for (std::size_t rank = 0; rank < left[k].size(); ++rank)
      if (left[k][rank].data != right[k][rank].data) return false;
  return true;
}

}  // namespace

rule::Rounding classify_rounding(const Equation& equation, std::span<const Instance> instances,
                                 Random& random) {
  bool exact = true;
  rule::RealDraws draws({});
  for (const Instance& instance : instances)
    for (int draw = 0; exact && draw < kRoundingDraws; ++draw) {
      draws.begin(1, random);
      const auto inputs = real_numbers(equation, instance, draws, random);
      exact = same_bits(instance.source.run<double>(inputs, {}), instance.target.run<double>(inputs, {}));
    }
  if (exact) return rule::Rounding::exact;
  for (const Instance& instance : instances)
    if (arithmetic_of_side(instance.source) != arithmetic_of_side(instance.target))
      return rule::Rounding::changes;
  return rule::Rounding::reassociates;
}

}  // namespace weft::equation
