#include "weft/rules/rule/row_positions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/base/check.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/numbers.h"
#include "weft/rules/rule/rounded_constants.h"

namespace weft::rule {
namespace {

using plan::ValueId;

std::size_t attribute_named(const plan::Operator& op, std::string_view name) {
  const auto specs = op.attributes();
  return static_cast<std::size_t>(std::ranges::find(specs, name, &plan::AttributeSpec::name) - specs.begin());
}

bool is_place_node(const plan::Operator& op) {
  return row_operand(op) != kNoRowOperand || row_result(op) != kNoRowOperand;
}

// The size of the index that a node's attribute names, taken from a value of the left.
std::optional<Number> size_along(const Rule& rule, const AttributeTerm& along) {
  if (along.indices.size() != 1) return std::nullopt;
  for (std::uint16_t value = 0; value < rule.left.values; ++value)
    if (rule.left.has_list[value] && has(rule.left.lists[value], along.indices[0])) {
      Number size;
      size.kind = Number::Kind::size;
      size.value = value;
      size.index = along.indices[0];
      return size;
    }
  return std::nullopt;
}

// The end of a node's range of rows; a slice may begin after row 0.
std::optional<Number> rows_of(const Rule& rule, const PatternNode& node) {
  const auto term = [&](std::string_view name) -> const AttributeTerm* {
    const std::size_t at = attribute_named(*node.op, name);
    return at < node.attributes.size() ? &node.attributes[at] : nullptr;
  };
  const auto number = [&](std::string_view name) -> std::optional<Number> {
    const AttributeTerm* found = term(name);
    if (found == nullptr) return std::nullopt;
    if (found->kind == AttributeTerm::Kind::number) return found->number;
    if (found->kind != AttributeTerm::Kind::variable) return std::nullopt;
    Number variable;
    variable.kind = Number::Kind::variable;
    variable.variable = found->variable;
    return variable;
  };
  std::optional<Number> rows;
  if (node.op == &ops::labelled()) {
    rows = number("classes");
  } else if (node.op == &ops::slot()) {
    const auto experts = number("experts"), capacity = number("capacity");
    if (experts && capacity) rows = combined(Number::Kind::multiply, *experts, *capacity);
  } else if (const auto size = number("size")) {
    rows = size;
  } else {
    const AttributeTerm* along = term("along") != nullptr ? term("along") : term("over");
    if (along != nullptr) rows = size_along(rule, *along);
  }
  if (const auto begin = number("begin"); rows && begin) return combined(Number::Kind::add, *begin, *rows);
  return rows;
}

}  // namespace

std::size_t row_operand(const plan::Operator& op) {
  using Naming = std::pair<const plan::Operator*, std::size_t>;
  static const std::array<Naming, 7> kNaming = {{{&ops::gather(), 0},
                                                 {&ops::scatter_add(), 0},
                                                 {&ops::slot(), 0},
                                                 {&ops::labelled(), 0},
                                                 {&ops::cross_entropy(), 1},
                                                 {&ops::cross_entropy_gradient(), 1},
                                                 {&ops::linear_cross_entropy(), 2}}};
  const auto found = std::ranges::find(kNaming, &op, &Naming::first);
  return found == kNaming.end() ? kNoRowOperand : found->second;
}

std::size_t row_result(const plan::Operator& op) {
  if (&op == &ops::position() || &op == &ops::slot()) return 0;
  return &op == &ops::top_k() ? 1 : kNoRowOperand;
}

RowUses row_uses(const plan::Graph& graph) {
  RowUses uses;
  std::vector<bool> names(graph.value_count(), false);
  for (std::size_t id = graph.node_count(); id-- > 0;) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    uses.any = uses.any || is_place_node(node.op());
    bool used = false;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      used = used || names[node.result(k).value];
      for (const plan::Dim& dim : node.result_type(k).dims) uses.largest = std::max(uses.largest, dim.size);
    }
    const std::size_t place = row_operand(node.op());
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (i == place || (used && place == kNoRowOperand)) names[node.input(i).value] = true;
  }
  for (std::size_t id = 0; id < graph.node_count(); ++id)
    if (const plan::NodeView node = graph.view(plan::NodeId(id)); &node.op() == &ops::input())
      uses.inputs.push_back(names[node.result(0).value]);
  return uses;
}

std::optional<RuleInstance> with_row_offset(const RuleInstance& instance) {
  if (instance.refusal || !row_uses(instance.graph).any) return std::nullopt;
  RuleInstance far;
  far.bindings = instance.bindings;
  far.elements = instance.elements;
  plan::Graph& graph = far.graph;
  plan::Transplant transplant(instance.graph, graph);
  const plan::TypeId type = graph.intern_type(plan::DType::i32, {}).value();
  const std::array<plan::AttributeValue, 3> attributes = {graph.symbol("counted from"), type,
                                                          graph.symbol("")};
  const ValueId from = graph.add_value(ops::input(), {}, attributes).value();
  const auto beside = [&](const plan::Operator& op, ValueId value) {
    const plan::DType dtype = graph.type(value).dtype;
    ValueId start = from;
    if (dtype != plan::DType::i32) {
      const std::array<plan::AttributeValue, 1> to = {dtype};
      start = graph.add_value(ops::cast(), {&from, 1}, to).value();
    }
    const std::array<ValueId, 2> operands = {value, start};
    return graph.add_value(op, operands).value();
  };
  std::vector<ValueId> made(instance.graph.value_count());
  for (std::size_t id = 0; id < instance.graph.node_count(); ++id) {
    const plan::NodeView node = instance.graph.view(plan::NodeId(id));
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const ValueId input = made[node.input(i).value];
      inputs.push_back(i == row_operand(node.op()) ? beside(ops::sub(), input) : input);
    }
    const plan::NodeId copy = transplant.node(node.id(), inputs).value();
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId result = graph.result(copy, k);
      made[node.result(k).value] = k == row_result(node.op()) ? beside(ops::add(), result) : result;
    }
  }
  for (const plan::Output& output : instance.graph.outputs())
    transplant.output(output, made[output.value.value]);
  far.held = with_rounded_constants(graph);
  far.judges_rounded_constants = instance.judges_rounded_constants;
  return far;
}

std::optional<std::vector<Number>> row_bounds(const Rule& rule) {
  std::vector<Number> bounds;
  for (const Side* side : {&rule.left, &rule.right})
    for (const PatternNode& node : side->nodes) {
      if (node.op == nullptr || !is_place_node(*node.op)) continue;
      const std::optional<Number> rows = rows_of(rule, node);
      if (!rows) return std::nullopt;
      if (std::ranges::find(bounds, *rows) == bounds.end()) bounds.push_back(*rows);
    }
  return bounds;
}

}  // namespace weft::rule
