#include "weft/rules/rule/evaluate_guard.h"

#include <algorithm>

namespace weft::rule {
namespace {

bool distinct(const Condition& condition, const Place& place) {
  const auto &a = place.bindings.indices[condition.value], &b = place.bindings.indices[condition.other];
  return std::ranges::none_of(a, [&](Symbol index) { return std::ranges::find(b, index) != b.end(); });
}

bool replicated(plan::ValueId value, const Place& place) {
  if (place.layouts.empty()) return true;  // no mesh: every value is one value
  return std::ranges::all_of(place.layouts[value.value].axes, &plan::AxisLayout::is_replicated);
}

bool whole(const Condition& condition, const Place& place) {
  if (place.layouts.empty()) return true;
  const plan::Layout& layout = place.layouts[place.left[condition.value].value];
  const std::vector<Symbol>& indices = place.bindings.indices[condition.other];
  return std::ranges::none_of(layout.axes, [&](const plan::AxisLayout& axis) {
    return axis.is_sliced() && std::ranges::find(indices, axis.index) != indices.end();
  });
}

bool compare(const Condition& condition, const Place& place) {
  const std::optional<std::int64_t> a = evaluate(condition.left, place);
  if (!a) return false;
  if (condition.kind == Condition::Kind::even) return *a % 2 == 0;
  if (condition.kind == Condition::Kind::odd) return *a % 2 != 0;
  const std::optional<std::int64_t> b = evaluate(condition.right, place);
  if (!b) return false;
  switch (condition.kind) {
    case Condition::Kind::equal: return *a == *b;
    case Condition::Kind::unequal: return *a != *b;
    case Condition::Kind::less: return *a < *b;
    case Condition::Kind::less_equal: return *a <= *b;
    case Condition::Kind::divides: return combine(Number::Kind::remainder, *b, *a) == 0;
    default: return false;
  }
}

}  // namespace

bool holds(const Condition& condition, const Place& place) {
  const auto value = [&](std::uint16_t of) { return place.left[of]; };
  switch (condition.kind) {
    case Condition::Kind::same_dtype:
      return place.graph.type(value(condition.value)).dtype == place.graph.type(value(condition.other)).dtype;
    case Condition::Kind::real: return plan::is_real(place.graph.type(value(condition.value)).dtype);
    case Condition::Kind::replicated: return replicated(value(condition.value), place);
    case Condition::Kind::whole: return whole(condition, place);
    case Condition::Kind::distinct: return distinct(condition, place);
    default: return compare(condition, place);
  }
}

const Condition* first_that_fails(std::span<const Condition> conditions, const Place& place) {
  for (const Condition& condition : conditions)
    if (!holds(condition, place)) return &condition;
  return nullptr;
}

}  // namespace weft::rule
