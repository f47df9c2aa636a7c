#include "weft/rules/rule/check_rule.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "weft/rules/rule/infer_lists.h"

namespace weft::rule {
namespace {

// Union-find over values that share a node: all nodes must be connected.
Status check_connected(const Rule& rule) {
  std::vector<std::size_t> parent(rule.left.values);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto find = [&](std::size_t value) {
    while (parent[value] != value) value = parent[value] = parent[parent[value]];
    return value;
  };
  for (const PatternNode& node : rule.left.nodes) {
    for (const std::uint16_t operand : node.operands) parent[find(operand)] = find(node.first_result);
    for (std::uint16_t k = 1; k < node.results; ++k)
      parent[find(node.first_result + k)] = find(node.first_result);
  }
  for (const Rule::Output& output : rule.outputs)
    if (find(output.left) != find(rule.outputs[0].left))
      return user_error(fmt::format("the left side of {} is not connected: {} and {} share no value",
                                    rule.name, rule.outputs[0].name, output.name),
                        "write a rule for each");
  for (const PatternNode& node : rule.left.nodes)
    if (find(node.first_result) != find(rule.outputs[0].left))
      return user_error(fmt::format("the left side of {} is not connected: some nodes do not reach {}",
                                    rule.name, rule.outputs[0].name));
  return {};
}

Status check_outputs(const Rule& rule) {
  for (const Rule::Output& output : rule.outputs) {
    if (!rule.left.has_list[output.left] || !rule.right.has_list[output.right]) continue;
    const IndexList &left = rule.left.lists[output.left], &right = rule.right.lists[output.right];
    if (!std::ranges::is_permutation(left, right))
      return user_error(fmt::format("{} has indices {} on the left but {} on the right", output.name,
                                    print(rule, left), print(rule, right)));
  }
  return {};
}

Status check_number_sizes(const Rule& rule, const Number& number) {
  for (const Number& part : number.parts) WEFT_TRY_STATUS(check_number_sizes(rule, part));
  if (number.kind != Number::Kind::size || !rule.left.has_list[number.value]) return {};
  if (has(rule.left.lists[number.value], number.index)) return {};
  return user_error(fmt::format("size({0}, {1}): {0} has indices {2}", rule.left.names[number.value],
                                rule.indices[number.index].name, print(rule, rule.left.lists[number.value])));
}

// On the right, the size of an index without a stated size must follow from the operand or the
// left.
Status check_open_sizes(const Rule& rule, const PatternNode& node, const AttributeTerm& term) {
  const bool all_known = std::ranges::all_of(rule.left.has_list, [](bool known) { return known; });
  for (std::size_t k = 0; k < term.sizes.size(); ++k) {
    if (term.sizes[k].kind != Number::Kind::open || !all_known) continue;
    const std::uint16_t index = term.indices[k];
    const bool in_operand = !node.operands.empty() && has(rule.right.lists[node.operands[0]], index);
    const bool on_left =
        std::ranges::any_of(rule.left.lists, [&](const IndexList& list) { return has(list, index); });
    if (!in_operand && !on_left)
      return user_error(
          fmt::format("the right side needs a size for index {}", rule.indices[index].name),
          fmt::format("state it: {}: size(x, {})", rule.indices[index].name, rule.indices[index].name));
  }
  return {};
}

Status check_numbers(const Rule& rule) {
  for (const Side* side : {&rule.left, &rule.right})
    for (const PatternNode& node : side->nodes)
      for (const AttributeTerm& term : node.attributes) {
        WEFT_TRY_STATUS(check_number_sizes(rule, term.number));
        for (const Number& size : term.sizes) WEFT_TRY_STATUS(check_number_sizes(rule, size));
        if (side == &rule.right) WEFT_TRY_STATUS(check_open_sizes(rule, node, term));
      }
  for (const Condition& condition : rule.when) {
    WEFT_TRY_STATUS(check_number_sizes(rule, condition.left));
    WEFT_TRY_STATUS(check_number_sizes(rule, condition.right));
  }
  return {};
}

}  // namespace

Status check(const Rule& rule) {
  WEFT_TRY_STATUS(check_connected(rule));
  WEFT_TRY_STATUS(check_outputs(rule));
  WEFT_TRY_STATUS(check_numbers(rule));
  return check_possible(rule);
}

}  // namespace weft::rule
