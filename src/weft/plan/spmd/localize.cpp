#include "weft/plan/spmd/localize.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/uses.h"
#include "weft/plan/spmd/localizer.h"
#include "weft/plan/spmd/ring.h"

namespace weft::spmd {
namespace {

// The neutral element for a rank with nothing to combine. Integers have no infinity, so their
// largest or smallest value is used.
double neutral_number(const plan::Layout& layout, plan::DType dtype) {
  const double most = !is_integer(dtype)          ? std::numeric_limits<double>::infinity()
                      : dtype == plan::DType::i64 ? 0x1.fffffffffffffp62  // the largest below 2^63
                                                  : std::numeric_limits<std::int32_t>::max();
  for (const plan::AxisLayout& axis : layout.axes) {
    if (axis == plan::AxisLayout::partial(plan::Monoid::max)) return -most;
    if (axis == plan::AxisLayout::partial(plan::Monoid::min)) return most;
  }
  return 0;
}

}  // namespace

using plan::NodeView;
using plan::Share;
using plan::ValueId;

bool is_empty(std::span<const Share> shares) {
  return std::ranges::any_of(shares, [](const Share& share) { return share.size == 0; });
}

Localizer::Localizer(const plan::Graph& graph, const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
                     std::int32_t rank, Exchanges exchanges)
    : graph_(graph), mesh_(mesh), layouts_(layouts), rank_(rank), exchanges_(exchanges) {
  for (std::size_t s = 0; s < graph.symbols().size(); ++s)
    symbols_.push_back(local_.graph.symbol(graph.text(Symbol(s))));
  for (std::size_t s = 0; s < graph.scope_count(); ++s) {
    plan::Scope scope = graph.scope(plan::ScopeId(s));
    scope.name = here(scope.name);
    local_.graph.add_scope(scope);
  }
  local_.graph.name = graph.name;
  local_.values.resize(graph.value_count());
}

Result<LocalPlan> Localizer::run() && {
  const std::vector<std::size_t> last = ops::last_uses(graph_);
  for (std::size_t n = 0; n < graph_.node_count(); ++n) {
    const NodeView node = graph_.view(plan::NodeId(n));
    local_.graph.set_label(here(node.node().label));
    local_.graph.set_scope(node.node().scope);
    local_.graph.set_when(node.node().when);
    // Leave out a node on all ranks or on none: a single rank cannot tell whether others need its
    // value.
    const bool is_left_out =
        exchanges_ == Exchanges::stay && !ops::is_source(node.op()) && !ops::is_needed(node, last);
    if (Status status = is_left_out ? Status() : add(node); !status.ok())
      return user_error(fmt::format("node {} cannot be sliced for rank {}: {}", describe(graph_, node.id()),
                                    rank_, status.error().message),
                        status.error().hint);
    local_.ends.push_back(local_.graph.node_count());
  }
  for (const plan::Output& output : graph_.outputs())
    if (const ValueId value = local_.values[output.value.value]; value.valid())
      local_.graph.add_output({here(output.name), {}, here(output.updates)}, value);
  return std::move(local_);
}

std::vector<Share> Localizer::shares_of(ValueId value) const {
  return plan::shares_of(graph_.type(value), layouts_[value.value], mesh_, rank_);
}

Result<plan::TypeId> Localizer::sized(const plan::Type& type, std::span<const std::int64_t> sizes) {
  std::vector<plan::Dim> dims;
  for (std::size_t d = 0; d < type.rank(); ++d) dims.push_back({here(type.dims[d].index), sizes[d]});
  return local_.graph.intern_type(type.dtype, dims);
}

Result<plan::TypeId> Localizer::local_type(ValueId value) {
  std::vector<std::int64_t> sizes;
  for (const Share& share : shares_of(value)) sizes.push_back(share.size);
  return sized(graph_.type(value), sizes);
}

Status Localizer::receive(std::string_view how, ValueId result) {
  if (is_empty(shares_of(result))) return {};
  WEFT_TRY(type, local_type(result));
  WEFT_TRY(value, ops::add_input(local_.graph, fmt::format("{} {}", how, result.value), type));
  local_.values[result.value] = value;
  return {};
}

Status Localizer::add_neutral(ValueId result) {
  if (exchanges_ == Exchanges::leave) return receive("none", result);
  if (is_empty(shares_of(result))) return {};
  WEFT_TRY(type, local_type(result));
  const plan::DType dtype = graph_.type(result).dtype;
  WEFT_TRY(number, ops::add_constant(local_.graph, neutral_number(layouts_[result.value], dtype), dtype));
  WEFT_TRY(value, ops::add_broadcast(local_.graph, number, local_.graph.type(type).dims));
  local_.values[result.value] = value;
  return {};
}

Status Localizer::add(const NodeView& node) {
  if (const ops::Communication* op = ops::find_communication(node.op()); op != nullptr)
    return exchanges_ == Exchanges::stay ? exchange(node, *op) : leave(node);
  for (const std::size_t axis : ring_axes(node, layouts_))
    if (mesh_.axes[axis].ranks > 1) return add_ring_attention(node, axis);
  const bool idle = std::ranges::any_of(node.node().inputs,
                                        [&](ValueId input) { return !local_.values[input.value].valid(); });
  if (idle || (ops::is_source(node.op()) && is_empty(shares_of(node.result(0))))) return add_neutrals(node);
  return compute(node);
}

Status Localizer::add_neutrals(const NodeView& node) {
  for (std::size_t k = 0; k < node.result_count(); ++k) WEFT_TRY_STATUS(add_neutral(node.result(k)));
  return {};
}

Status Localizer::leave(const NodeView& node) {
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    if (const ValueId operand = local_.values[node.input(k).value]; operand.valid())
      local_.graph.add_output(local_.graph.symbol(fmt::format("give {}", node.result(k).value)), operand);
    WEFT_TRY_STATUS(receive("take", node.result(k)));
  }
  return {};
}

Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank, Exchanges exchanges) {
  return Localizer(graph, mesh, layouts, rank, exchanges).run();
}

}  // namespace weft::spmd
