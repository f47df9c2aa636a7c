#include "weft/rules/rule/left_tests.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/rules/rule/literals.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {
namespace {

constexpr std::uint16_t kUnmet = std::numeric_limits<std::uint16_t>::max();

class LeftTestWriter {
 public:
  explicit LeftTestWriter(const Rule& rule) : rule_(rule), side_(rule.left), producer_(side_.values, kUnmet) {
    written_.nodes.assign(side_.nodes.size(), kUnmet);
    written_.values.assign(side_.values, kUnmet);
    for (std::size_t n = 0; n < side_.nodes.size(); ++n)
      for (std::size_t k = 0; k < side_.nodes[n].results; ++k)
        producer_[side_.nodes[n].first_result + k] = static_cast<std::uint16_t>(n);
  }

  LeftTests write() {
    if (side_.values > kMaxLeftValues || rule_.outputs.empty()) return {};
    if (producer_[rule_.outputs[0].left] == kUnmet) return {};
    enter(producer_[rule_.outputs[0].left], next_node_++);
    while (const auto link = find_link()) {
      Test& test = put(Test::Kind::reader);
      test.value = number_of(link->second);
      enter(link->first, next_node_++);
    }
    const auto met = [](std::uint16_t number) { return number != kUnmet; };
    if (!std::ranges::all_of(written_.nodes, met) || !std::ranges::all_of(written_.values, met)) return {};
    return std::move(written_);
  }

 private:
  Test& put(Test::Kind kind) {
    Test& test = written_.tests.emplace_back();
    test.kind = kind;
    return test;
  }
  bool known(std::uint16_t value) const { return written_.values[value] != kUnmet; }
  std::uint16_t number_of(std::uint16_t value) const { return written_.values[value]; }

  bool gives_output(std::size_t node) const {
    return std::ranges::any_of(rule_.outputs,
                               [&](const auto& output) { return producer_[output.left] == node; });
  }

  // A node not reached yet that reads a known value. Prefers values made by a node, since inputs
  // usually have more readers.
  std::optional<std::pair<std::uint16_t, std::uint16_t>> find_link() const {
    std::optional<std::pair<std::uint16_t, std::uint16_t>> link;
    for (std::size_t n = 0; n < side_.nodes.size(); ++n) {
      if (written_.nodes[n] != kUnmet) continue;
      for (const std::uint16_t operand : side_.nodes[n].operands) {
        if (!known(operand)) continue;
        const bool made = producer_[operand] != kUnmet;
        if (!link || made) link = {static_cast<std::uint16_t>(n), operand};
        if (made) return link;
      }
    }
    return link;
  }

  void enter(std::uint16_t n, std::uint16_t number) {
    const PatternNode& node = side_.nodes[n];
    written_.nodes[n] = number;
    {
      Test& test = put(node.op != nullptr ? Test::Kind::op : Test::Kind::op_class);
      test.node = number;
      test.op = node.op;
      if (node.op == nullptr) test.of = rule_.operators[node.operator_variable].of;
      test.operands = static_cast<std::uint16_t>(node.operands.size());
      test.results = node.results;
    }
    // A value that was numbered as an operand before its producer was known keeps its number.
    for (std::size_t k = 0; k < node.results; ++k, ++next_value_)
      if (!known(static_cast<std::uint16_t>(node.first_result + k)))
        written_.values[node.first_result + k] = next_value_;
    for (std::size_t other = 0; other < side_.nodes.size(); ++other) {
      if (other == n || written_.nodes[other] == kUnmet || !gives_output(n) || !gives_output(other)) continue;
      Test& test = put(Test::Kind::differ);
      test.node = number;
      test.value = written_.nodes[other];
    }
    for (std::size_t k = 0; k < node.attributes.size(); ++k) {
      if (!is_literal(node.attributes[k])) continue;
      Test& test = put(Test::Kind::literal);
      test.node = number;
      test.position = static_cast<std::uint16_t>(k);
      test.term = node.attributes[k];
    }
    operands(node, number);
  }

  // Known operands first, since they fail soonest; then those made by nodes; then inputs.
  void operands(const PatternNode& node, std::uint16_t number) {
    const bool any_order = node.op != nullptr && commutes(*node.op);
    std::vector<bool> done(node.operands.size(), false);
    const auto read = [&](Test::Kind kind, std::size_t k) {
      Test& test = put(kind);
      test.node = number;
      test.position = static_cast<std::uint16_t>(any_order ? 0 : k);
      test.commutes = any_order;
      done[k] = true;
      if (kind == Test::Kind::hold)
        test.value = number_of(node.operands[k]);
      else
        written_.values[node.operands[k]] = next_value_++;
    };
    for (std::size_t k = 0; k < node.operands.size(); ++k)
      if (known(node.operands[k])) read(Test::Kind::hold, k);
    for (const bool made : {true, false}) {
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        const std::uint16_t operand = node.operands[k], producer = producer_[operand];
        if (done[k] || made != (producer != kUnmet)) continue;
        if (known(operand)) {
          read(Test::Kind::hold, k);
          continue;
        }
        read(Test::Kind::take, k);
        if (!made) continue;
        Test& test = put(Test::Kind::producer);
        test.value = number_of(operand);
        test.position = static_cast<std::uint16_t>(operand - side_.nodes[producer].first_result);
        enter(producer, next_node_++);
      }
    }
  }

  const Rule& rule_;
  const Side& side_;
  std::vector<std::uint16_t> producer_;  // by value: the node that makes it
  LeftTests written_;
  std::uint16_t next_node_ = 0, next_value_ = 0;
};

}  // namespace

LeftTests left_tests(const Rule& rule) { return LeftTestWriter(rule).write(); }

std::size_t root_of(const Rule& rule) {
  const std::uint16_t output = rule.outputs[0].left;
  const auto makes_it = [&](const PatternNode& node) {
    return node.first_result <= output && output < node.first_result + node.results;
  };
  return static_cast<std::size_t>(std::ranges::find_if(rule.left.nodes, makes_it) - rule.left.nodes.begin());
}

bool commutes(const plan::Operator& op) {
  static const std::array<const plan::Operator*, 9> such = {
      &ops::add(),       &ops::mul(),         &ops::maximum(),    &ops::minimum(), &ops::equal(),
      &ops::not_equal(), &ops::logical_and(), &ops::logical_or(), &ops::contract()};
  return std::ranges::find(such, &op) != such.end();
}

bool is_of_class(const plan::Operator& op, OperatorVariable::Class of) {
  const ops::Pointwise* row = ops::find_pointwise(op);
  return row != nullptr && row->arity == (of == OperatorVariable::Class::unary ? 1u : 2u);
}

}  // namespace weft::rule
