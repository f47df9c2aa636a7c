#include "weft/rules/rule/evaluate_number.h"

#include <limits>

namespace weft::rule {
namespace {

std::optional<std::int64_t> size_of(const Number& number, const Place& place) {
  if (number.value >= place.left.size()) return std::nullopt;
  const plan::Type type = place.graph.type(place.left[number.value]);
  const std::int64_t further = place.rule.indices[number.index].many ? 0 : place.further;
  std::int64_t product = 1;  // at most the value's elements, so it fits in 64 bits
  for (const Symbol index : place.bindings.indices[number.index]) {
    if (!type.has(index)) return std::nullopt;
    product *= type.size_of(index) + further;
  }
  return product;
}

std::optional<std::int64_t> ranks_along(const Number& number, const Place& place) {
  if (place.mesh == nullptr) return std::nullopt;
  const Symbol axis(place.bindings.attributes[number.variable].id);
  const int found = place.mesh->find(place.graph.text(axis));
  if (found < 0) return std::nullopt;
  return place.mesh->axes[static_cast<std::size_t>(found)].ranks;
}

}  // namespace

std::optional<std::int64_t> combine(Number::Kind kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (kind) {
    case Number::Kind::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Number::Kind::subtract:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Number::Kind::multiply:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    default: break;
  }
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  return kind == Number::Kind::divide ? a / b : a % b;
}

std::optional<std::int64_t> evaluate(const Number& number, const Place& place) {
  switch (number.kind) {
    case Number::Kind::literal: return number.literal;
    case Number::Kind::variable: return place.bindings.attributes[number.variable].integer;
    case Number::Kind::size: return size_of(number, place);
    case Number::Kind::elements:
      if (number.value >= place.left.size()) return std::nullopt;
      return place.graph.type(place.left[number.value]).elements();
    case Number::Kind::ranks: return ranks_along(number, place);
    case Number::Kind::open: return std::nullopt;
    default: break;
  }
  const std::optional<std::int64_t> a = evaluate(number.parts[0], place),
                                    b = evaluate(number.parts[1], place);
  if (!a || !b) return std::nullopt;
  return combine(number.kind, *a, *b);
}

}  // namespace weft::rule
