// Comparisons, Where, and casts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Status OnnxResolver::condition(Status pushed) {
  if (pushed.ok()) conditions_.insert(model_.file.result(model_.file.nodes.size() - 1));
  return pushed;
}

Result<std::string_view> OnnxResolver::as_condition(std::uint32_t value) const {
  if (conditions_.contains(value)) return std::string_view("{}");
  if (stored_.contains(value)) return std::string_view("({} > 0)");
  return user_error(fmt::format("expected a boolean tensor, found numbers: {}",
                                formats::shown(model_.file.values[value].id)),
                    "a comparison, Not, And, Or, or a tensor of bool");
}

Status OnnxResolver::both(std::string_view infix) {
  WEFT_TRY(a, operand(0));
  WEFT_TRY(b, operand(1));
  WEFT_TRY(left, as_condition(a));
  WEFT_TRY(right, as_condition(b));
  WEFT_TRY(result, joined_shape(shape(a), shape(b)));
  model_.functions[model_.file.nodes.size()] = fmt::format("({} {} {})", left, infix, right);
  return condition(push(made(Operation::select, {a, b}), std::move(result), "condition"));
}

Status OnnxResolver::add_not() {
  WEFT_TRY(x, operand(0));
  WEFT_TRY(form, as_condition(x));
  model_.functions[model_.file.nodes.size()] = fmt::format("(NOT {})", form);
  return condition(push(made(Operation::select, {x}), ModelShape(shape(x)), "condition"));
}

// A constant operand is printed as a number; folded shapes leave nothing in the text.
Status OnnxResolver::add_where() {
  WEFT_TRY(chosen_by, operand(0));
  WEFT_TRY(when, as_condition(chosen_by));
  ModelNode node = made(Operation::select, {chosen_by});
  ModelShape result = shape(chosen_by);
  std::string values[2];
  for (const std::size_t i : {0u, 1u}) {
    if (const auto value = constant(i + 1)) {
      WEFT_TRY(joined, joined_shape(result, ModelShape(rank_of_constant(i + 1), 1)));
      result = std::move(joined);
      if (std::isnan(*value)) return user_error("expected a number, found NaN");
      values[i] = std::isinf(*value) ? (*value < 0 ? "-inf" : "inf") : fmt::format("{}", *value);
      if (std::isfinite(*value) && values[i].find_first_of(".e") == std::string::npos) values[i] += ".0";
      continue;
    }
    WEFT_TRY(value, operand(i + 1));
    if (conditions_.contains(value)) return user_error("expected numbers to choose from, found conditions");
    WEFT_TRY(joined, joined_shape(result, shape(value)));
    result = std::move(joined);
    values[i] = "{}";
    node.operands.push_back(value);
  }
  model_.functions[model_.file.nodes.size()] =
      fmt::format("CASE WHEN {} THEN {} ELSE {} END", when, values[0], values[1]);
  return push(std::move(node), std::move(result), "chosen");
}

Status OnnxResolver::add_cast() {
  const auto to = static_cast<OnnxCast>(whole("to", 0));
  const bool to_whole = to == OnnxCast::i32 || to == OnnxCast::i64, to_bool = to == OnnxCast::boolean;
  if (!is_real_cast(to) && !to_whole && !to_bool)
    return user_error(
        fmt::format("to: expected float, double, float16, bfloat16, int32, int64 or bool, found type {}",
                    whole("to", 0)));
  WEFT_TRY(x, operand(0));
  if (whole_.contains(x) || model_.positions.contains(x)) {
    if (to_whole) return alias();
    return to_bool ? user_error("expected numbers, found positions or labels") : number_of(x);
  }
  if (to_whole)
    return user_error("a cast to whole numbers drops fractions",
                      "whole numbers are inputs: positions or labels");
  if (conditions_.contains(x)) {
    if (to_bool) return alias();
    model_.functions[model_.file.nodes.size()] = "CASE WHEN {} THEN 1.0 ELSE 0.0 END";
    return push(made(Operation::select, {x}), ModelShape(shape(x)), "number");
  }
  if (stored_.contains(x)) return alias();  // already 1 and 0
  if (to_bool) return condition(function("({} <> 0)"));
  const std::string note =
      "casts between floating-point types are dropped: the setting precision controls rounding";
  if (std::ranges::find(model_.notes, note) == model_.notes.end()) model_.notes.push_back(note);
  return alias();
}

}  // namespace weft::imports
