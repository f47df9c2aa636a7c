#include <algorithm>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/spmd/local_halo.h"
#include "weft/plan/spmd/localizer.h"
#include "weft/plan/spmd/position_attributes.h"

namespace weft::spmd {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::NodeView;
using plan::Share;
using plan::ValueId;

namespace {

ops::ExchangeKind kind_of(const ops::Exchange& exchange) {
  using Take = ops::Exchange::Take;
  switch (exchange.take) {
    case Take::combined:
      return exchange.keep.valid() ? ops::ExchangeKind::reduce_scatter : ops::ExchangeKind::all_reduce;
    case Take::joined:
      return exchange.keep.valid() ? ops::ExchangeKind::all_to_all : ops::ExchangeKind::all_gather;
    case Take::root: return ops::ExchangeKind::broadcast_from;
    case Take::bordered: return ops::ExchangeKind::halo;
    case Take::own:
    case Take::stacked:
    case Take::shifted: break;
  }
  return ops::ExchangeKind::permute_ranks;
}

std::string_view priority_of(const NodeView& node) {
  const auto attributes = node.op().attributes();
  return attributes.back().name == "priority" ? node.word(attributes.size() - 1) : ops::kNormalPriority;
}

}  // namespace

Status Localizer::exchange(const NodeView& node, const ops::Communication& op) {
  const ValueId operand = local_.values[node.input(0).value];
  const ops::Exchange exchange = op.exchange(node);
  const std::int32_t ranks = mesh_.axes[static_cast<std::size_t>(mesh_.find(op.axis(node)))].ranks;
  const bool is_empty_here = is_empty(shares_of(node.result(0)));
  ValueId& result = local_.values[node.result(0).value];
  if (exchange.take == ops::Exchange::Take::own) {
    if (!operand.valid() || is_empty_here) return {};
    WEFT_TRY(part, own_block(node, operand, exchange.keep));
    result = part;
    return {};
  }
  if (exchange.take == ops::Exchange::Take::stacked) {
    if (!operand.valid() || is_empty_here) return {};
    WEFT_TRY(local, local_type(node.result(0)));
    WEFT_TRY(row, ops::add_broadcast(local_.graph, operand, local_.graph.type(local).dims));
    result = row;
    return {};
  }
  if (ranks == 1) {
    for (std::size_t k = 0; k < node.result_count(); ++k)
      local_.values[node.result(k).value] = local_.values[node.input(k).value];
    return {};
  }
  if (ops::steps_between_sums(node) > 1) return own_addends(node, ranks);
  if (exchange.take == ops::Exchange::Take::bordered) return fetch_borders(node, op, exchange);
  plan::TypeId type;
  if (!is_empty_here) {
    WEFT_TRY(local, local_type(node.result(0)));
    type = local;
  }
  const ops::LocalExchange what{
      .kind = kind_of(exchange),
      .axis = op.axis(node),
      .ranks = ranks,
      .joins = here(exchange.join),
      .parts = here(exchange.keep),
      .monoid = exchange.monoid == plan::Monoid::none ? plan::Monoid::sum : exchange.monoid,
      .by = exchange.rank,
      .dtype = node.result_type(0).dtype,
      .priority = priority_of(node),
      .calls = ops::parts_of(node)};
  if (node.input_count() > 1) return exchange_bucket(node, what);
  WEFT_TRY(value, add_local_exchange(local_.graph, what, operand, type));
  if (!is_empty_here) result = value;
  return {};
}

// The rank's own addend times the number of ranks, as if all addends were equal.
Status Localizer::own_addends(const NodeView& node, std::int32_t ranks) {
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const ValueId addend = local_.values[node.input(k).value];
    if (!addend.valid()) continue;
    WEFT_TRY(times, ops::add_constant(local_.graph, ranks, node.input_type(k).dtype));
    WEFT_TRY(sum, ops::add_pointwise(local_.graph, ops::mul(), {addend, times}));
    local_.values[node.result(k).value] = sum;
  }
  return {};
}

Status Localizer::exchange_bucket(const NodeView& node, const ops::LocalExchange& what) {
  std::vector<ValueId> operands, results;
  for (std::size_t k = 0; k < node.input_count(); ++k) {
    const ValueId operand = local_.values[node.input(k).value];
    if (!operand.valid()) continue;
    operands.push_back(operand);
    results.push_back(node.result(k));
  }
  if (operands.empty()) {
    WEFT_TRY_STATUS(add_local_exchange(local_.graph, what, {}, {}));
    return {};
  }
  WEFT_TRY(made, add_local_bucket(local_.graph, what, operands));
  for (std::size_t k = 0; k < results.size(); ++k)
    local_.values[results[k].value] = local_.graph.result(made, k);
  return {};
}

Status Localizer::fetch_borders(const NodeView& node, const ops::Communication& op,
                                const ops::Exchange& exchange) {
  const auto axis = static_cast<std::size_t>(mesh_.find(op.axis(node)));
  const auto along = static_cast<std::size_t>(node.input_type(0).position(exchange.join));
  std::vector<Share> shares = shares_of(node.result(0));
  const bool has_any = shares[along].size > 0;
  shares[along].size = 1;
  const ops::LocalExchange what{.kind = ops::ExchangeKind::halo,
                                .axis = op.axis(node),
                                .ranks = mesh_.axes[axis].ranks,
                                .joins = here(exchange.join),
                                .parts = {},
                                .by = mesh_.coordinate(rank_, axis),
                                .size = node.input_type(0).dims[along].size,
                                .before = exchange.before,
                                .after = exchange.after,
                                .dtype = node.result_type(0).dtype};
  if (is_empty(shares)) {
    WEFT_TRY_STATUS(add_local_exchange(local_.graph, what, {}, {}));
    return {};
  }
  plan::TypeId bordered;
  if (has_any) {
    WEFT_TRY(type, local_type(node.result(0)));
    bordered = type;
  }
  WEFT_TRY(value, add_local_halo(local_.graph, what, local_.values[node.input(0).value], bordered));
  local_.values[node.result(0).value] = value;
  return {};
}

Result<ValueId> Localizer::own_block(const NodeView& node, ValueId operand, Symbol along) {
  const auto dim = static_cast<std::size_t>(node.result_type(0).position(along));
  const Share whole = shares_of(node.input(0))[dim], block = shares_of(node.result(0))[dim];
  const std::int64_t begin = block.begin - whole.begin;
  const NodeView maker = local_.graph.view(local_.graph.value(operand).producer);
  if (block != whole && can_make_any_block(maker, here(along)))
    return recompute_block(maker, {begin, block.size});
  return ops::add_slice(local_.graph, operand, here(along), begin, begin + block.size);
}

bool Localizer::can_make_any_block(const NodeView& maker, Symbol along) {
  const PositionAttributes placing = find_position_attributes(maker.op());
  if (placing.begin < 0 || placing.size < 0 || maker.result_count() != 1) return false;
  return std::ranges::any_of(maker.op().signature(maker).loops, [&](const plan::Loop& loop) {
    return loop.index == along && loop.positional && loop.results[0] >= 0 &&
           std::ranges::all_of(loop.operands, [](std::int8_t dim) { return dim < 0; });
  });
}

Result<ValueId> Localizer::recompute_block(const NodeView& maker, Share part) {
  const PositionAttributes placing = find_position_attributes(maker.op());
  std::vector<AttributeValue> attributes;
  for (std::size_t k = 0; k < maker.op().attributes().size(); ++k) {
    switch (maker.op().attributes()[k].kind) {
      case AttributeKind::integer: attributes.emplace_back(maker.integer(k)); break;
      case AttributeKind::real: attributes.emplace_back(maker.real(k)); break;
      case AttributeKind::word:
      case AttributeKind::index: attributes.emplace_back(maker.symbol(k)); break;
      case AttributeKind::indices: attributes.emplace_back(maker.indices(k)); break;
      case AttributeKind::dtype: attributes.emplace_back(maker.dtype(k)); break;
      case AttributeKind::type: attributes.emplace_back(plan::TypeId(maker.node().attributes[k].id)); break;
    }
  }
  attributes[static_cast<std::size_t>(placing.begin)] =
      maker.integer(static_cast<std::size_t>(placing.begin)) + part.begin;
  attributes[static_cast<std::size_t>(placing.size)] = part.size;
  const std::vector<ValueId> inputs(maker.node().inputs.begin(), maker.node().inputs.end());
  return local_.graph.add_value(maker.op(), inputs, attributes);
}

}  // namespace weft::spmd
