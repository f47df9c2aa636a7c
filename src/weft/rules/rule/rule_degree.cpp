#include "weft/rules/rule/rule_degree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestRuleDegree = std::int64_t{1} << 58;  // beyond, there is no useful bound

template <std::size_t N>
bool is_one_of(const plan::Operator& op, const std::array<const ops::Operator& (*)(), N>& makers) {
  return std::ranges::any_of(makers, [&](const auto make) { return &make() == &op; });
}

// Operators whose results are elements of their operands.
bool is_move(const plan::Operator& op) {
  return is_one_of(op, std::array{&ops::broadcast, &ops::transpose, &ops::rename, &ops::split, &ops::merge,
                                  &ops::slice, &ops::pad, &ops::concat, &ops::all_gather, &ops::all_to_all,
                                  &ops::slice_across, &ops::permute_ranks, &ops::broadcast_from});
}

// Operators without products: sums, selections and moves.
bool is_linear(const plan::Operator& op) {
  static constexpr std::array kSuch = {&ops::add,       &ops::sub,      &ops::neg,    &ops::maximum,
                                       &ops::minimum,   &ops::relu,     &ops::reduce, &ops::broadcast,
                                       &ops::transpose, &ops::rename,   &ops::split,  &ops::merge,
                                       &ops::slice,     &ops::pad,      &ops::concat, &ops::cast,
                                       &ops::max_pool,  &ops::avg_pool, &ops::select, &ops::abs};
  return is_one_of(op, kSuch) || ops::find_communication(op) != nullptr;
}

// Element operations, and the nodes that do them. Merging two products into one keeps the former;
// regrouping with other broadcasts keeps the latter. Distributing a factor changes both.
struct DegreeArithmetic {
  double elements = 0, nodes = 0;

  void add(double count) {
    elements += count;
    nodes += 1;
  }
};

// What a node compares: its operand with zero, its operands with each other, or elements of one
// operand along an index.
enum class Choice : std::uint8_t { none, with_zero, operands, along };

Choice choice_of(const plan::NodeView& node) {
  if (&node.op() == &ops::relu()) return Choice::with_zero;
  if (&node.op() == &ops::max_pool()) return Choice::along;
  const ops::Pointwise* row = ops::find_pointwise(node.op());
  const bool is_predicate = row != nullptr && row->gives_bool && row->takes != ops::Elements::boolean;
  if (is_predicate || is_one_of(node.op(), std::array{&ops::maximum, &ops::minimum, &ops::abs}))
    return Choice::operands;
  const auto specs = node.op().attributes();
  const auto kind = std::ranges::find(specs, "kind", &plan::AttributeSpec::name);
  if (kind == specs.end() || kind->kind != plan::AttributeKind::word) return Choice::none;
  const std::string_view word = node.word(static_cast<std::size_t>(kind - specs.begin()));
  return word == "max" || word == "min" || word == "largest" ? Choice::along : Choice::none;
}

// The products and quotients of nodes [first, last). The left side's nodes come before those that
// only the right side has.
std::array<DegreeArithmetic, 2> arithmetic_of(const plan::Graph& graph, std::size_t first, std::size_t last) {
  DegreeArithmetic products, quotients;
  for (std::size_t id = first; id < last; ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    const auto elements = static_cast<double>(node.result_type(0).elements());
    if (&node.op() == &ops::contract() || &node.op() == &ops::conv2d())
      products.add(node.op().work(node).multiply_adds);
    if (&node.op() == &ops::mul()) products.add(elements);
    if (&node.op() == &ops::div() || &node.op() == &ops::avg_pool()) quotients.add(elements);
  }
  return {products, quotients};
}

bool regroups(const std::array<DegreeArithmetic, 2>& left, const std::array<DegreeArithmetic, 2>& right) {
  return std::ranges::equal(left, right, [](const DegreeArithmetic& a, const DegreeArithmetic& b) {
    return a.elements == b.elements || a.nodes == b.nodes;
  });
}

// The exponent of a power by a constant; otherwise that of an uninterpreted function.
std::int64_t exponent_of(const plan::NodeView& power) {
  const plan::NodeView exponent = power.graph().view(power.graph().value(power.input(1)).producer);
  if (&exponent.op() != &ops::constant()) return 4;
  const double value = std::abs(exponent.real(0));
  return value < static_cast<double>(kLargestRuleDegree) ? static_cast<std::int64_t>(value) + 4
                                                         : kLargestRuleDegree;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  return a > kLargestRuleDegree / b ? kLargestRuleDegree : a * b;
}

std::size_t left_nodes(const RuleInstance& instance) {
  std::size_t count = 0;
  for (const plan::ValueId value : instance.left)
    count = std::max<std::size_t>(count, instance.graph.value(value).producer.value + 1);
  return count;
}

}  // namespace

std::int64_t degree(const RuleInstance& instance) {
  const plan::Graph& graph = instance.graph;
  std::vector<std::int64_t> degrees(graph.value_count(), 1);
  std::int64_t largest = 1;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    std::int64_t sum = 0, most = 0;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      sum += degrees[node.input(i).value];
      most = std::max(most, degrees[node.input(i).value]);
    }
    const bool multiplies =
        is_one_of(node.op(), std::array{&ops::mul, &ops::contract, &ops::conv2d, &ops::div});
    const std::int64_t made = node.input_count() == 0 ? 1
                              : is_linear(node.op())  ? most
                              : multiplies            ? sum
                              : &node.op() == &ops::pow()
                                  ? times(most, exponent_of(node))
                                  : 4 * sum;  // norms and gates: squares and quotients
    for (std::size_t k = 0; k < node.result_count(); ++k)
      degrees[node.result(k).value] = std::clamp<std::int64_t>(made, 1, kLargestRuleDegree);
    largest = std::max(largest, std::clamp<std::int64_t>(made, 1, kLargestRuleDegree));
  }
  return 2 * largest;  // one quotient's numerator times the other's denominator
}

bool is_polynomial(const RuleInstance& instance) {
  static constexpr std::array kPolynomials = {&ops::add,      &ops::sub,      &ops::neg,
                                              &ops::mul,      &ops::contract, &ops::conv2d,
                                              &ops::avg_pool, &ops::reduce,   &ops::input};
  for (std::size_t id = 0; id < instance.graph.node_count(); ++id) {
    const plan::NodeView node = instance.graph.view(plan::NodeId(id));
    const bool such = is_move(node.op()) || is_one_of(node.op(), kPolynomials) ||
                      ops::find_communication(node.op()) != nullptr;
    if (!such || choice_of(node) != Choice::none || (&node.op() == &ops::reduce() && node.word(0) == "peak"))
      return false;
  }
  return true;
}

Comparisons comparisons(const RuleInstance& instance) {
  const plan::Graph& graph = instance.graph;
  const auto is_variable = [&](const plan::Operator& op) {
    return std::ranges::find(instance.bindings.operators, &op) != instance.bindings.operators.end();
  };
  // Numbers that are only moved or selected are counted once, at their origin.
  std::vector<int> counted(graph.value_count(), 0);
  std::vector<bool> chosen(graph.value_count(), false);
  const auto count = [&](const auto& self, plan::ValueId value, int numbers) -> void {
    if (chosen[value.value]) return;
    const plan::NodeView maker = graph.view(graph.value(value).producer);
    if (maker.input_count() == 0 || !is_move(maker.op()))
      counted[value.value] = std::max(counted[value.value], numbers);
    else
      for (std::size_t i = 0; i < maker.input_count(); ++i) self(self, maker.input(i), numbers);
  };
  bool with_zero = false, only_zero = true;
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    const Choice choice = choice_of(node);
    if (choice == Choice::none || is_variable(node.op())) continue;
    with_zero |= choice == Choice::with_zero;
    only_zero &= choice == Choice::with_zero;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      count(count, node.input(i), choice == Choice::along ? 2 : 1);
    chosen[node.result(0).value] = true;
  }
  const int numbers = std::accumulate(counted.begin(), counted.end(), 0);
  if (numbers == 0) return {};
  if (!with_zero) return {0, numbers - 1};
  return only_zero ? Comparisons{numbers, 0} : Comparisons{0, numbers};
}

Rounding classify_rounding(std::span<const RuleInstance* const> instances) {
  for (const RuleInstance* instance : instances) {
    const std::size_t split = left_nodes(*instance);
    if (!regroups(arithmetic_of(instance->graph, 0, split),
                  arithmetic_of(instance->graph, split, instance->graph.node_count())))
      return Rounding::changes;
  }
  return Rounding::reassociates;
}

}  // namespace weft::rule
