#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/ops/sources.h"

namespace weft::device::cuda {
namespace {

// Types other than f32 are computed in f64, which represents what the processor computes.
std::string in_double(const ops::Pointwise& row, bool whole) {
  const std::string_view name = row.name;
  if (whole && name == "div") return "(y == 0 ? 0.0 : trunc(x / y))";
  if (whole && name == "mod") return "(y == 0 || y == -1 ? 0.0 : fmod(x, y))";
  if (name == "add") return "x + y";
  if (name == "sub") return "x - y";
  if (name == "mul") return "x * y";
  if (name == "div") return "x / y";
  if (name == "mod") return "fmod(x, y)";
  if (name == "maximum") return "(x > y || x != x ? x : y)";
  if (name == "minimum") return "(x < y || x != x ? x : y)";
  if (name == "neg") return "-x";
  if (name == "abs") return "fabs(x)";
  if (name == "equal") return "double(x == y)";
  if (name == "not-equal") return "double(x != y)";
  if (name == "less") return "double(x < y)";
  if (name == "less-equal") return "double(x <= y)";
  if (name == "greater") return "double(x > y)";
  if (name == "greater-equal") return "double(x >= y)";
  if (name == "and") return "x * y";
  if (name == "or") return "x + y - x * y";
  if (name == "not") return "1.0 - x";
  if (name == "select") return "(x == 0.0 ? z : y)";
  return {};
}

}  // namespace

Made make_elementwise(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Operator& op = node.op();
  const ops::Pointwise* const row = ops::find_pointwise(op);
  const bool is_cast = &op == &ops::cast();
  if (row == nullptr && !is_cast && &op != &ops::constant() && &op != &ops::position()) return {nullptr};
  const plan::Type type = node.result_type(0);
  std::vector<IndexLoop> loops;
  std::vector<std::string> offsets;
  std::string body;
  for (std::size_t s = 0; s < call.in.size(); ++s) {
    offsets.push_back(fmt::format("o{}", s));
    body += fmt::format("    long long o{} = 0;\n", s);
  }
  for (const plan::Dim& dim : type.dims) {
    IndexLoop loop{dim.size, {}};
    for (const program::Place& place : call.what.operands) loop.strides.push_back(place.stride(dim.index));
    loops.push_back(std::move(loop));
  }
  body += walk("i", loops, offsets);
  constexpr const char* kNames[] = {"x", "y", "z"};
  for (std::size_t s = 0; s < call.in.size() && s < 3; ++s)
    body += fmt::format("    const double {} = double({}[o{}]);\n", kNames[s], static_cast<char>('a' + s), s);
  const bool whole = !call.in.empty() && is_integer(node.input_type(0).dtype);
  std::string value;
  if (&op == &ops::constant())
    value = fmt::format("{:.17g}", node.real(0));
  else if (&op == &ops::position())
    value = fmt::format("double({}ll + i)", node.integer(2));
  else if (is_cast)
    value = type.dtype == plan::DType::boolean ? "double(x != 0.0)"
            : is_integer(type.dtype)           ? "trunc(x)"
                                               : "x";
  else
    value = in_double(*row, whole);
  if (value.empty()) {
    const std::string names[] = {"float(x)", "float(y)", "float(z)"};
    value = expression(op, std::span(names).first(std::min<std::size_t>(call.in.size(), 3))).value_or("");
    if (value.empty()) return {nullptr};
  }
  body += fmt::format("    r0[i] = ({})({});\n", type_name(type.dtype), value);
  return elements_kernel(call, over_elements(call, body), type.elements());
}

}  // namespace weft::device::cuda
