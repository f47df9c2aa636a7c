#include "weft/rules/rule/rounded_constants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/base/check.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"

namespace weft::rule {
namespace {

struct HeldFormat {
  int digits, least_exponent;
  double most;
};

HeldFormat held_format(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16: return {8, -126, 0x1.FEp127};
    case plan::DType::f16: return {11, -14, 65504};
    case plan::DType::f8e4m3: return {4, -6, plan::largest_f8(dtype)};
    case plan::DType::f8e5m2: return {3, -14, plan::largest_f8(dtype)};
    default: return {24, -126, std::numeric_limits<float>::max()};
  }
}

bool is_held(const plan::NodeView& node) {
  if (&node.op() != &ops::constant()) return true;
  const double value = node.real(0);
  return std::isnan(value) || round_to_dtype(node.dtype(1), value) == value;
}

}  // namespace

double round_to_dtype(plan::DType dtype, double value, bool unbounded) {
  if (!plan::is_real(dtype) || dtype == plan::DType::f64 || value == 0 || !std::isfinite(value)) return value;
  const HeldFormat format = held_format(dtype);
  const int exponent = unbounded ? std::ilogb(value) : std::max(std::ilogb(value), format.least_exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - format.digits + 1, -1074));
  const double held = std::nearbyint(value / unit) * unit;  // ties to even
  if (unbounded || std::abs(held) <= format.most) return held;
  return std::copysign(std::numeric_limits<double>::infinity(), held);
}

bool states_constants(const Rule& rule) {
  for (const Side* side : {&rule.left, &rule.right})
    for (const PatternNode& node : side->nodes) {
      if (node.op == &ops::cast()) return true;
      if (node.op != &ops::constant() || node.attributes.empty()) continue;
      const AttributeTerm& value = node.attributes[0];
      const bool computes =
          value.kind == AttributeTerm::Kind::number && value.number.kind != Number::Kind::variable;
      if (computes || (value.kind == AttributeTerm::Kind::real && std::isfinite(value.real))) return true;
    }
  return false;
}

std::optional<plan::Graph> with_rounded_constants(const plan::Graph& graph) {
  bool all_held = true;
  for (std::size_t id = 0; id < graph.node_count(); ++id)
    all_held = all_held && is_held(graph.view(plan::NodeId(id)));
  if (all_held) return std::nullopt;
  plan::Graph held;
  for (std::uint32_t k = 0; k < graph.symbols().size(); ++k) held.symbol(graph.text(Symbol(k)));
  plan::Transplant transplant(graph, held);
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (is_held(node)) {
      WEFT_CHECK(transplant.node(node.id(), node.node().inputs).ok());
      continue;
    }
    const plan::DType dtype = node.dtype(1);
    const std::array<plan::AttributeValue, 2> attributes = {round_to_dtype(dtype, node.real(0)), dtype};
    WEFT_CHECK(held.add(ops::constant(), {}, attributes).ok());
  }
  for (const plan::Output& output : graph.outputs()) held.add_output(output, output.value);
  return held;
}

}  // namespace weft::rule
