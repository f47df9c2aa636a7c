#include "weft/device/cuda/expression.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/all.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::device::cuda {
namespace {

// A row without a direct expression becomes a function, one line per step of its definition.
std::string function_name(const ops::Pointwise& row) {
  std::string name = fmt::format("weft_row_{}", row.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string call_text(const ops::Pointwise& row, std::span<const std::string> operands) {
  if (row.cuda.empty())
    return fmt::format("{}({})", function_name(row), fmt::join(operands.first(row.arity), ", "));
  const auto at = [&](std::size_t i) { return i < operands.size() ? operands[i] : std::string(); };
  return fmt::format(fmt::runtime(row.cuda), at(0), at(1), at(2));
}

std::string function_text(const ops::Pointwise& row) {
  std::vector<std::string> parameters, body, values;
  for (std::size_t i = 0; i < row.arity; ++i) parameters.push_back(fmt::format("float x{}", i));
  ops::Terms n;
  for (const ops::Terms::Step& step : n.steps(row.terms(n))) {
    if (step.operand != ops::Terms::kNone) {
      values.push_back(fmt::format("x{}", step.operand));
      continue;
    }
    if (step.function.empty()) {
      values.push_back(number(step.number));
      continue;
    }
    std::vector<std::string> operands;
    for (const std::uint32_t operand : step.operands)
      if (operand != ops::Terms::kNone) operands.push_back(values[operand]);
    values.push_back(fmt::format("t{}", values.size()));
    body.push_back(fmt::format("  const float {} = {};\n", values.back(),
                               *expression(*ops::all().find(step.function), operands)));
  }
  return fmt::format("__device__ __forceinline__ float {}({}) {{\n{}  return {};\n}}\n", function_name(row),
                     fmt::join(parameters, ", "), fmt::join(body, ""), values.back());
}

}  // namespace

std::optional<std::string> expression(const plan::Operator& op, std::span<const std::string> operands) {
  const ops::Pointwise* const row = ops::find_pointwise(op);
  if (row == nullptr) return {};
  return call_text(*row, operands);
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
  // Nine digits identify a float.
  std::string text = fmt::format("{:.9g}", single);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single < 0 || std::signbit(single) ? fmt::format("({}f)", text) : text + "f";
}

std::string_view prelude() {
  static const std::string source = [] {
    std::string text = kernel_source("prelude");
    for (const ops::Pointwise& row : ops::pointwise_rows())
      if (row.cuda.empty()) text += function_text(row);
    return text;
  }();
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
