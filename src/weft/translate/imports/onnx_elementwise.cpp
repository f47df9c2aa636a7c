// Functions of one or two operands; those that are no operation of the file are kept as the text of a form.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

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
  return function(
      fmt::format("least(greatest({{}} * {} + {}, 0), 1)", real("alpha", 0.2), real("beta", 0.5)));
}

Status OnnxResolver::add_clip() {
  std::string form = "{}";
  for (const std::size_t i : {1u, 2u}) {
    if (!given(i)) continue;
    const auto bound = number(i);
    if (!bound || !std::isfinite(*bound)) return user_error("expected bounds that are numbers");
    form = fmt::format("{}({}, {})", i == 1 ? "greatest" : "least", form, *bound);
  }
  return form == "{}" ? alias() : function(form);
}

Status OnnxResolver::bounded(std::string_view name) {
  const auto left = number(0), right = number(1);
  if (node_->inputs.size() != 2 || left.has_value() == right.has_value())
    return user_error("expected a tensor and a number");
  return with_number(fmt::format("{}({{}}, {})", name, left ? *left : *right));
}

Status OnnxResolver::add_gelu() {
  const auto way = node_->attributes.find("approximate");
  if (way != node_->attributes.end() && way->second.word == "tanh") return function("gelu_tanh({})");
  return function("gelu({})", Operation::gelu);
}

Status OnnxResolver::with_number(std::string form) {
  WEFT_TRY(x, operand(known(0) != nullptr && number(0) ? 1 : 0));
  model_.functions[model_.file.nodes.size()] = std::move(form);
  return push(made(Operation::relu, {x}), ModelShape(shape(x)), "scaled");
}

Status OnnxResolver::two(Operation operation, std::string_view infix, std::string_view stem) {
  const std::optional<double> left = number(0), right = number(1);
  for (const auto& value : {left, right})
    if (value && !std::isfinite(*value)) return user_error("expected a finite number");
  if (right)
    return with_number(fmt::format("({{}}{}{})", infix,
                                   *right < 0 ? fmt::format("({})", *right) : fmt::format("{}", *right)));
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
      return user_error(fmt::format("shapes do not go together: {} and {}", formats::print_shape(x),
                                    formats::print_shape(y)));
    result[result.size() - 1 - i] = std::max(p, q);
  }
  return result;
}

Status OnnxResolver::add_pow() {
  const auto power = number(1);
  if (!power) return user_error("expected a power that is one number");
  return with_number(fmt::format("pow({{}}, {})", *power));
}

}  // namespace weft::imports
