// Functions of one or two operands; those that are not operations of the model file are kept as
// text forms.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {
namespace {

// Prints a number as a factor or a term, with parentheses if it is negative.
std::string in_product(double number) {
  return number < 0 ? fmt::format("({})", number) : fmt::format("{}", number);
}

}  // namespace

Status OnnxResolver::function(std::string_view form, Operation nearest) {
  WEFT_TRY(x, operand(0));
  if (nearest == Operation::relu && form != "relu({})") model_.functions[model_.file.nodes.size()] = form;
  const std::string stem(form.substr(0, form.find('(')));
  return push(made(nearest, {x}), ModelShape(shape(x)), stem.empty() ? "scaled" : stem);
}

Status OnnxResolver::add_leaky_relu() {
  const double slope = real("alpha", 0.01);
  if (!(slope >= 0 && slope <= 1)) return user_error(fmt::format("alpha: expected 0 to 1, found {}", slope));
  return function(fmt::format("greatest({{}}, {{}} * {})", slope));
}

Status OnnxResolver::add_hard_sigmoid() {
  const double alpha = real("alpha", 0.2), beta = real("beta", 0.5);
  if (!std::isfinite(alpha) || !std::isfinite(beta))
    return user_error(fmt::format("alpha and beta: expected finite numbers, found {} and {}", alpha, beta));
  return function(fmt::format("least(greatest({{}} * {} + {}, 0), 1)", in_product(alpha), in_product(beta)));
}

// Without training_mode it is the identity and is left out.
Status OnnxResolver::add_dropout() {
  if (!given(2)) return alias();
  const auto trains = number(2), rate = given(1) ? number(1) : std::optional(0.5);
  if (!trains || !rate) return user_error("expected a constant ratio and training_mode");
  if (*trains == 0 || *rate == 0) return alias();
  if (!(*rate > 0 && *rate < 1))
    return user_error(fmt::format("ratio: expected 0 to below 1, found {}", *rate));
  return function(fmt::format("dropout({{}}, rate => {})", *rate));
}

Status OnnxResolver::add_clip() {
  std::string form = "{}";
  for (const std::size_t i : {1u, 2u}) {
    if (!given(i)) continue;
    const auto bound = number(i);
    if (!bound || !std::isfinite(*bound)) return user_error("expected constant bounds");
    form = fmt::format("{}({}, {})", i == 1 ? "greatest" : "least", form, *bound);
  }
  return form == "{}" ? alias() : function(form);
}

Status OnnxResolver::bounded(std::string_view name) {
  const auto left = constant(0), right = constant(1);
  if (node_->inputs.size() != 2 || left.has_value() == right.has_value())
    return user_error("expected a tensor and a number");
  if (!std::isfinite(left ? *left : *right)) return user_error("expected a finite number");
  return with_number(fmt::format("{}({{}}, {})", name, left ? *left : *right));
}

Status OnnxResolver::add_gelu() {
  const auto way = node_->attributes.find("approximate");
  if (way != node_->attributes.end() && way->second.word == "tanh") return function("gelu_tanh({})");
  if (way != node_->attributes.end() && way->second.word != "none")
    return user_error(
        fmt::format("approximate: expected none or tanh, found '{}'", formats::shown(way->second.word)));
  return function("gelu({})", Operation::gelu);
}

Status OnnxResolver::with_number(std::string form) {
  const std::size_t at = constant(0) ? 1 : 0;
  WEFT_TRY(x, operand(at));
  const ModelShape from = shape(x);
  ModelShape result = from;
  // A constant may have more dims than the other operand: [1, 1] and [4] give [1, 4].
  const std::size_t rank = rank_of_constant(1 - at);
  if (rank > from.size()) result.insert(result.begin(), rank - from.size(), 1);
  model_.functions[model_.file.nodes.size()] = std::move(form);
  if (result == from) return push(made(Operation::relu, {x}), std::move(result), "scaled");
  WEFT_TRY(inner, push_inner(made(Operation::relu, {x}), from, "scaled"));
  return push(made(Operation::reshape, {inner}), std::move(result), "shaped");
}

Status OnnxResolver::two(Operation operation, std::string_view infix, std::string_view stem) {
  const std::optional<double> left = constant(0), right = constant(1);
  for (const auto& value : {left, right})
    if (value && !std::isfinite(*value)) return user_error("expected a finite number");
  if (right) return with_number(fmt::format("({{}}{}{})", infix, in_product(*right)));
  if (left) return with_number(fmt::format("({}{}{{}})", *left, infix));
  WEFT_TRY(a, operand(0));
  WEFT_TRY(b, operand(1));
  WEFT_TRY(result, joined_shape(shape(a), shape(b)));
  model_.infixes[model_.file.nodes.size()] = infix;
  return push(made(operation, {a, b}), std::move(result), std::string(stem));
}

Result<OnnxResolver::ModelShape> OnnxResolver::joined_shape(const ModelShape& x, const ModelShape& y) {
  ModelShape result(std::max(x.size(), y.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t p = i < x.size() ? x[x.size() - 1 - i] : 1, q = i < y.size() ? y[y.size() - 1 - i] : 1;
    if (p != q && p != 1 && q != 1)
      return user_error(fmt::format("shapes cannot be broadcast: {} and {}", formats::print_shape(x),
                                    formats::print_shape(y)));
    result[result.size() - 1 - i] = std::max(p, q);
  }
  return result;
}

Status OnnxResolver::add_pow() {
  const auto power = number(1);
  if (!power || !std::isfinite(*power) || constant(0))
    return user_error("expected a tensor and a power that is one finite number");
  return with_number(fmt::format("pow({{}}, {})", *power));
}

}  // namespace weft::imports
