#include "weft/device/cuda/expression.h"

#include <cmath>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::device::cuda {
namespace {

struct Form {
  std::string_view name;  // of ops/pointwise.cpp
  std::string_view text;  // {0}, {1}, {2}: the operands
};

// Functions by their accurate versions: what a step computes must not depend on where it runs by more than
// rounding does.
constexpr Form kForms[] = {
    {"add", "({0} + {1})"},
    {"sub", "({0} - {1})"},
    {"mul", "({0} * {1})"},
    {"div", "({0} / {1})"},
    {"mod", "fmodf({0}, {1})"},
    {"pow", "powf({0}, {1})"},
    {"maximum", "weft_max({0}, {1})"},
    {"minimum", "weft_min({0}, {1})"},
    {"neg", "(-{0})"},
    {"abs", "fabsf({0})"},
    {"equal", "({0} == {1} ? 1.0f : 0.0f)"},
    {"not-equal", "({0} != {1} ? 1.0f : 0.0f)"},
    {"less", "({0} < {1} ? 1.0f : 0.0f)"},
    {"less-equal", "({0} <= {1} ? 1.0f : 0.0f)"},
    {"greater", "({0} > {1} ? 1.0f : 0.0f)"},
    {"greater-equal", "({0} >= {1} ? 1.0f : 0.0f)"},
    {"and", "({0} * {1})"},
    {"or", "({0} + {1} - {0} * {1})"},
    {"not", "(1.0f - {0})"},
    {"select", "({0} == 0.0f ? {2} : {1})"},
    {"exp", "expf({0})"},
    {"log", "logf({0})"},
    {"sqrt", "sqrtf({0})"},
    {"rsqrt", "(1.0f / sqrtf({0}))"},
    {"sin", "sinf({0})"},
    {"cos", "cosf({0})"},
    {"tanh", "tanhf({0})"},
    {"erf", "erff({0})"},
    {"sigmoid", "weft_sigmoid({0})"},
    {"relu", "weft_max({0}, 0.0f)"},
    {"gelu", "({0} * weft_normal_below({0}))"},
    {"gelu-tanh", "(0.5f * {0} * (1.0f + weft_tanh_of_cubic({0})))"},
    {"silu", "({0} * weft_sigmoid({0}))"},
    {"gelu-gradient", "({0} * (weft_normal_below({1}) + {1} * weft_normal_density({1})))"},
    {"gelu-tanh-gradient", "({0} * weft_gelu_tanh_slope({1}))"},
    {"silu-gradient", "({0} * weft_silu_slope({1}))"},
};

}  // namespace

std::optional<std::string> expression(const plan::Operator& op, std::span<const std::string> operands) {
  const ops::Pointwise* const row = ops::find_pointwise(op);
  if (row == nullptr) return {};
  for (const Form& form : kForms) {
    if (form.name != row->name) continue;
    const auto at = [&](std::size_t i) { return i < operands.size() ? operands[i] : std::string(); };
    return fmt::format(fmt::runtime(form.text), at(0), at(1), at(2));
  }
  return {};
}

std::string combined(plan::Monoid monoid, std::string_view a, std::string_view b) {
  if (monoid == plan::Monoid::max) return fmt::format("weft_max({}, {})", a, b);
  if (monoid == plan::Monoid::min) return fmt::format("weft_min({}, {})", a, b);
  return fmt::format("({} + {})", a, b);
}

std::string_view identity(plan::Monoid monoid) {
  if (monoid == plan::Monoid::max) return "-WEFT_INFINITY";
  if (monoid == plan::Monoid::min) return "WEFT_INFINITY";
  return "0.0f";
}

std::string number(double value) {
  const auto single = static_cast<float>(value);
  if (std::isnan(single)) return "__int_as_float(0x7fc00000)";
  if (std::isinf(single)) return single > 0 ? "WEFT_INFINITY" : "(-WEFT_INFINITY)";
  // Nine digits name a float.
  std::string text = fmt::format("{:.9g}", single);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single < 0 || std::signbit(single) ? fmt::format("({}f)", text) : text + "f";
}

std::string_view prelude() {
  static const std::string source = kernel_source("prelude");
  return source;
}

std::string_view pack_source() {
  static const std::string source = kernel_source("pack");
  return source;
}

std::string_view type_name(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::f32: return "float";
    case plan::DType::f64: return "double";
    case plan::DType::i32: return "int";
    case plan::DType::i64: return "long long";
    case plan::DType::bf16: return "weft_bf16";
    case plan::DType::f16: return "weft_f16";
    case plan::DType::boolean:
    case plan::DType::f8e4m3:
    case plan::DType::f8e5m2: break;
  }
  return "unsigned char";
}

}  // namespace weft::device::cuda
