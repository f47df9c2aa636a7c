#include "weft/rules/rule/guards.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/rules/rule/print_rule.h"

namespace weft::rule {
namespace {

using Argument = GuardWord::Argument;

constexpr std::array kOneNumber = {Argument::number, Argument::none};
constexpr std::array kTwoNumbers = {Argument::number, Argument::number};
constexpr std::array kOneValue = {Argument::value, Argument::none};
constexpr std::array kTwoValues = {Argument::value, Argument::value};
constexpr std::array kValueAndIndex = {Argument::value, Argument::index};
constexpr std::array kTwoIndices = {Argument::index, Argument::index};

plan::Type type_of(std::uint16_t value, const Place& place) { return place.graph.type(place.left[value]); }

bool has_same_dtype(const Condition& condition, const Place& place) {
  return type_of(condition.value, place).dtype == type_of(condition.other, place).dtype;
}

bool has_real_dtype(const Condition& condition, const Place& place) {
  return plan::is_real(type_of(condition.value, place).dtype);
}

std::string type_found(const Condition& condition, const Place& place) {
  return print(type_of(condition.value, place), place.graph.symbols());
}

// Null for a value that a rewrite added, whose layout is unknown.
const plan::Layout* layout_of(const Condition& condition, const Place& place) {
  const std::uint32_t value = place.left[condition.value].value;
  return value < place.layouts.size() ? &place.layouts[value] : nullptr;
}

bool is_replicated_value(const Condition& condition, const Place& place) {
  if (place.layouts.empty()) return true;  // no mesh: there is one copy of every value
  const plan::Layout* const layout = layout_of(condition, place);
  return layout != nullptr && std::ranges::all_of(layout->axes, &plan::AxisLayout::is_replicated);
}

bool is_whole_along(const Condition& condition, const Place& place) {
  if (place.layouts.empty()) return true;
  const plan::Layout* const layout = layout_of(condition, place);
  const std::vector<Symbol>& indices = place.bindings.indices[condition.other];
  return layout != nullptr && std::ranges::none_of(layout->axes, [&](const plan::AxisLayout& axis) {
           return axis.is_sliced() && std::ranges::find(indices, axis.index) != indices.end();
         });
}

std::string layout_found(const Condition& condition, const Place& place) {
  const plan::Layout* const layout = layout_of(condition, place);
  if (layout == nullptr || place.mesh == nullptr) return "its layout is not known";
  return print(*layout, *place.mesh, place.graph.symbols());
}

bool are_distinct(const Condition& condition, const Place& place) {
  const auto &a = place.bindings.indices[condition.value], &b = place.bindings.indices[condition.other];
  return std::ranges::none_of(a, [&](Symbol index) { return std::ranges::find(b, index) != b.end(); });
}

// In the order of Condition::Kind.
constexpr GuardWord kGuardWords[] = {
    {.kind = Condition::Kind::equal,
     .name = "=",
     .usage = "a = b",
     .meaning = "a is b",
     .arguments = kTwoNumbers,
     .compare = [](std::int64_t a, std::int64_t b) { return a == b; }},
    {.kind = Condition::Kind::unequal,
     .name = "!=",
     .usage = "a != b",
     .meaning = "a is not b",
     .arguments = kTwoNumbers,
     .is_strict = true,
     .compare = [](std::int64_t a, std::int64_t b) { return a != b; }},
    {.kind = Condition::Kind::less,
     .name = "<",
     .usage = "a < b",
     .meaning = "a is less than b",
     .arguments = kTwoNumbers,
     .is_strict = true,
     .compare = [](std::int64_t a, std::int64_t b) { return a < b; }},
    {.kind = Condition::Kind::less_equal,
     .name = "<=",
     .usage = "a <= b",
     .meaning = "a is at most b",
     .arguments = kTwoNumbers,
     .compare = [](std::int64_t a, std::int64_t b) { return a <= b; }},
    {.kind = Condition::Kind::divides,
     .name = "divides",
     .usage = "divides(a, b)",
     .meaning = "b is a multiple of a",
     .arguments = kTwoNumbers,
     .compare = [](std::int64_t a, std::int64_t b) { return combine(Number::Kind::remainder, b, a) == 0; }},
    {.kind = Condition::Kind::even,
     .name = "even",
     .usage = "even(a)",
     .meaning = "a is a multiple of 2",
     .arguments = kOneNumber,
     .compare = [](std::int64_t a, std::int64_t) { return a % 2 == 0; }},
    {.kind = Condition::Kind::odd,
     .name = "odd",
     .usage = "odd(a)",
     .meaning = "a is not a multiple of 2",
     .arguments = kOneNumber,
     .compare = [](std::int64_t a, std::int64_t) { return a % 2 != 0; }},
    {.kind = Condition::Kind::same_dtype,
     .name = "same_dtype",
     .usage = "same_dtype(x, y)",
     .meaning = "both values have the same dtype",
     .arguments = kTwoValues,
     .check = has_same_dtype,
     .found = type_found},
    {.kind = Condition::Kind::real,
     .name = "real",
     .usage = "real(x)",
     .meaning = "x has a floating-point dtype",
     .arguments = kOneValue,
     .check = has_real_dtype,
     .found = type_found},
    {.kind = Condition::Kind::replicated,
     .name = "replicated",
     .usage = "replicated(x)",
     .meaning = "every rank holds all of x",
     .arguments = kOneValue,
     .check = is_replicated_value,
     .found = layout_found},
    {.kind = Condition::Kind::whole,
     .name = "whole",
     .usage = "whole(x, n)",
     .meaning = "no mesh axis slices index n of x",
     .arguments = kValueAndIndex,
     .check = is_whole_along,
     .found = layout_found},
    {.kind = Condition::Kind::distinct,
     .name = "distinct",
     .usage = "distinct(n, m)",
     .meaning = "n and m stand for different indices",
     .arguments = kTwoIndices,
     .is_strict = true,
     .check = are_distinct},
};

}  // namespace

std::span<const GuardWord> guard_words() { return kGuardWords; }

const GuardWord& guard_word(Condition::Kind kind) { return kGuardWords[static_cast<std::size_t>(kind)]; }

const GuardWord* find_guard_word(std::string_view name) {
  const auto found = std::ranges::find(kGuardWords, name, &GuardWord::name);
  return found == std::end(kGuardWords) || found->is_sign() ? nullptr : &*found;
}

bool holds(const Condition& condition, const Place& place) {
  const GuardWord& word = guard_word(condition.kind);
  if (word.check != nullptr) return word.check(condition, place);
  const std::optional<std::int64_t> a = evaluate(condition.left, place), b = evaluate(condition.right, place);
  return a && b && word.compare(*a, *b);
}

const Condition* first_that_fails(std::span<const Condition> conditions, const Place& place) {
  for (const Condition& condition : conditions)
    if (!holds(condition, place)) return &condition;
  return nullptr;
}

std::string why_not(const Condition& condition, const Place& place) {
  const GuardWord& word = guard_word(condition.kind);
  const auto number = [&](const Number& part) {
    const std::optional<std::int64_t> value = evaluate(part, place);
    return value ? fmt::to_string(*value) : std::string("no number");
  };
  std::string text = fmt::format("{} does not hold", print(condition, place.rule));
  if (word.found != nullptr) text += fmt::format(": {}", word.found(condition, place));
  if (word.compare != nullptr) text += fmt::format(": {}", number(condition.left));
  if (word.compare != nullptr && word.argument_count() == 2)
    text += fmt::format(" and {}", number(condition.right));
  return text;
}

}  // namespace weft::rule
