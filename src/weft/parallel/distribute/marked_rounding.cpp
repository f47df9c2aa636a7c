#include "weft/parallel/distribute/marked_rounding.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::DType;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

bool holds_all_of(DType dtype, DType other) {
  if (dtype == other || dtype == DType::f64) return true;
  if (plan::is_f8(other)) return !plan::is_f8(dtype);
  return dtype == DType::f32 && other != DType::f64;
}

// The type that holds the node's results exactly, given those of its operands: for a node that only
// moves data, the widest of these.
DType type_of_numbers(const NodeView& node, const std::vector<DType>& held) {
  const DType own = node.result_type(0).dtype;
  if (!plan::is_real(own) || ops::is_source(node.op()) || node.input_count() == 0) return own;
  constexpr auto kSelects = [](const plan::Operator& op) { return &op == &ops::select(); };
  const ops::Communication* const sends = ops::find_communication(node.op());
  const bool sums = sends != nullptr && sends->exchange(node).take == ops::Exchange::Take::combined;
  const bool moves = (sends != nullptr && !sums) || node.op().is_view() || kSelects(node.op()) ||
                     &node.op() == &ops::cast() || &node.op() == &ops::transpose() ||
                     &node.op() == &ops::slice() || &node.op() == &ops::concat() ||
                     &node.op() == &ops::broadcast() || &node.op() == &ops::relu() ||
                     &node.op() == &ops::neg();
  if (!moves) return own;
  DType widest = held[node.input(kSelects(node.op()) ? 1 : 0).value];
  for (const ValueId input : node.node().inputs) {
    const DType dtype = held[input.value];
    if (!plan::is_real(dtype)) continue;
    if (!holds_all_of(widest, dtype)) widest = holds_all_of(dtype, widest) ? dtype : own;
  }
  return plan::is_real(widest) && holds_all_of(own, widest) ? widest : own;
}

bool rounds(const NodeView& node, const std::vector<DType>& held) {
  const DType from = held[node.node().inputs.empty() ? 0 : node.input(0).value];
  return &node.op() == &ops::cast() && plan::is_real(from) && plan::is_real(node.result_type(0).dtype) &&
         !holds_all_of(node.result_type(0).dtype, from);
}

// Calls visit(node, whether it rounds), in order.
template <class Visit>
Status for_each_rounding(const plan::Graph& graph, Visit&& visit) {
  std::vector<DType> held(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    WEFT_TRY_STATUS(visit(node, rounds(node, held)));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      held[node.result(k).value] = k == 0 ? type_of_numbers(node, held) : node.result_type(k).dtype;
  }
  return {};
}

// A different function per type, so that rounding to different types differs.
const ops::Operator& shown_as(DType dtype) {
  switch (dtype) {
    case DType::bf16: return ops::sin();
    case DType::f16: return ops::cos();
    case DType::f8e4m3: return ops::tanh();
    case DType::f8e5m2: return ops::erf();
    default: return ops::exp();
  }
}

// A function of partial sums has no meaning, but a multiple of them does.
constexpr double kShownOfAddends = 3;

bool is_whole_value(std::span<const plan::Layout> layouts, ValueId value) {
  return layouts.empty() || std::ranges::none_of(layouts[value.value].axes, [](const plan::AxisLayout& axis) {
           return axis.is_partial();
         });
}

}  // namespace

std::string rounded_to(const plan::Graph& graph) {
  std::set<std::string_view> types;
  const Status status = for_each_rounding(graph, [&](const NodeView& node, bool rounds) -> Status {
    if (rounds) types.insert(plan::name(node.result_type(0).dtype));
    return {};
  });
  return status.ok() ? fmt::format("{}", fmt::join(types, " and ")) : std::string();
}

Result<plan::Graph> with_marked_rounding(const plan::Graph& graph, std::span<const plan::Layout> layouts) {
  plan::Graph made;
  made.name = graph.name;
  plan::Transplant moved(graph, made);
  std::vector<ValueId> values(graph.value_count());
  WEFT_TRY_STATUS(for_each_rounding(graph, [&](const NodeView& node, bool rounds) -> Status {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
    made.set_when(node.node().when);
    if (rounds && is_whole_value(layouts, node.input(0))) {
      WEFT_TRY(shown, ops::add_pointwise(made, shown_as(node.result_type(0).dtype), {inputs[0]}));
      inputs[0] = shown;
    } else if (rounds) {
      WEFT_TRY(times, ops::add_constant(made, kShownOfAddends, node.input_type(0).dtype));
      WEFT_TRY(shown, ops::add_pointwise(made, ops::mul(), {inputs[0], times}));
      inputs[0] = shown;
    }
    WEFT_TRY(added, moved.node(node.id(), inputs));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values[node.result(k).value] = made.result(added, k);
    return {};
  }));
  for (const plan::Output& output : graph.outputs()) moved.output(output, values[output.value.value]);
  return made;
}

}  // namespace weft::distribute
