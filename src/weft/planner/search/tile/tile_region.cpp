#include "weft/planner/search/tile/tile_region.h"

#include <algorithm>
#include <set>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::search {
namespace {

using plan::AttributeKind;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Whether ranks hold blocks of the index in this value.
bool is_in_blocks(const distribute::DistributedPlan& plan, ValueId value, Symbol index) {
  return std::ranges::any_of(plan.layouts[value.value].axes,
                             [&](const plan::AxisLayout& axis) { return axis.slices(index); });
}

bool is_in_type(const NodeView& node, Symbol index) {
  const auto specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (specs[k].kind == AttributeKind::type && node.type(k).has(index)) return true;
  return false;
}

// Whether the node has attributes that may depend on sizes of the model, such as classes, slots and
// the scale of attention. Their values for a tile are not known. Flags are 0 or 1. The count of a
// mean and the epsilon of norms do not depend on sizes.
bool has_sizes(const NodeView& node) {
  if (&node.op() == &ops::reduce() || &node.op() == &ops::layer_norm() || &node.op() == &ops::rms_norm())
    return false;
  const auto specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (specs[k].kind == AttributeKind::real) return true;
    if (specs[k].kind == AttributeKind::integer &&
        (specs[k].required || node.integer(k) < 0 || node.integer(k) > 1))
      return true;
  }
  return false;
}

bool is_named(const NodeView& node, Symbol index) {
  const auto specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (specs[k].kind == AttributeKind::index && node.symbol(k) == index) return true;
    if (specs[k].kind == AttributeKind::indices &&
        std::ranges::find(node.indices(k), index) != node.indices(k).end())
      return true;
  }
  return false;
}

bool has_parallel_loop(const NodeView& node, Symbol index) {
  const plan::Signature signature = node.op().signature(node);
  return std::ranges::any_of(signature.loops, [&](const plan::Loop& loop) {
    if (loop.role != plan::Role::parallel || loop.positional) return false;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (loop.operands[i] != node.input_type(i).position(index)) return false;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (loop.results[k] < 0 || loop.results[k] != node.result_type(k).position(index)) return false;
    return true;
  });
}

bool is_tileable_exchange(const NodeView& node, const TileIndex& along) {
  const ops::Exchange exchange = ops::find_communication(node.op())->exchange(node);
  if (node.input_count() != 1 || (!ops::collective_of(exchange) && &node.op() != &ops::slice_across()))
    return false;
  return along.blocks > 1 || (exchange.join != along.index && exchange.keep != along.index);
}

bool is_product(const NodeView& node) {
  return &node.op() == &ops::contract() && node.op().work(node).multiply_adds > 0;
}

// By value: whether only updates read it, directly or through exchanges.
std::vector<bool> read_by_updates_alone(const plan::Graph& graph) {
  std::vector<bool> late(graph.value_count(), true);
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const plan::Node& node = graph.node(NodeId(n));
    bool is_late = node.when.phase == plan::Phase::update;
    if (ops::find_communication(*node.op) != nullptr) {
      is_late = true;
      for (std::size_t k = 0; k < node.result_count; ++k)
        if (!late[node.first_result.value + k]) is_late = false;
    }
    for (const ValueId input : node.inputs)
      if (!is_late) late[input.value] = false;
  }
  return late;
}

// The nodes tiled together with one collective.
class RegionGrowth {
 public:
  RegionGrowth(const distribute::DistributedPlan& plan, const TileIndex& along, TileReach reach)
      : plan_(plan), along_(along), reach_(reach), readers_(plan.graph.value_count()) {
    for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
      for (const ValueId input : plan.graph.node(NodeId(n)).inputs)
        readers_[input.value].push_back(NodeId(n));
  }

  std::vector<NodeId> around(NodeId collective) const {
    const plan::Graph& graph = plan_.graph;
    const ops::Exchange exchange =
        ops::find_communication(graph.view(collective).op())->exchange(graph.view(collective));
    const bool sums = exchange.take == ops::Exchange::Take::combined,
               keeps = exchange.keep.valid() && !sums;  // all-to-all
    const bool back = reach_ != TileReach::near || sums || keeps, on = reach_ != TileReach::near || !sums;
    std::set<NodeId> found;
    std::vector<NodeId> open;
    bool has_product = false;
    const auto enter = [&](NodeId node) {
      if (found.contains(node) || !can_be_cut(plan_, node, along_)) return;
      found.insert(node);
      const bool ends = is_product(graph.view(node));
      has_product = has_product || ends;
      if (!ends || reach_ == TileReach::all) open.push_back(node);
    };
    enter(collective);
    while (!open.empty()) {
      const NodeView node = graph.view(open.back());
      open.pop_back();
      for (const ValueId input : node.node().inputs)
        if (back && graph.type(input).has(along_.index)) enter(graph.value(input).producer);
      for (std::size_t k = 0; on && k < node.result_count(); ++k)
        for (const NodeId reader : readers_[node.result(k).value]) enter(reader);
    }
    if (!has_product) found.clear();
    return {found.begin(), found.end()};
  }

 private:
  const distribute::DistributedPlan& plan_;
  const TileIndex along_;
  const TileReach reach_;
  std::vector<std::vector<NodeId>> readers_;  // by value
};

}  // namespace

bool can_be_cut(const distribute::DistributedPlan& plan, NodeId id, const TileIndex& along) {
  const NodeView node = plan.graph.view(id);
  if (ops::is_source(node.op()) || node.phase() == plan::Phase::update || node.result_count() == 0 ||
      node.input_count() == 0)
    return false;
  const auto is_whole = [&](ValueId value) {
    return along.blocks > 1 || !plan.graph.type(value).has(along.index) ||
           !is_in_blocks(plan, value, along.index);
  };
  for (std::size_t k = 0; k < node.result_count(); ++k)
    if (!plan.graph.type(node.result(k)).has(along.index) || !is_whole(node.result(k))) return false;
  for (const ValueId input : node.node().inputs)
    if (!is_whole(input)) return false;
  if (ops::find_communication(node.op()) != nullptr)
    return is_tileable_exchange(node, along) && has_parallel_loop(node, along.index);
  if (is_in_type(node, along.index) || has_sizes(node)) return false;
  // A value read with a split index must be written with it: only products support that.
  if (along.blocks > 1 && &node.op() != &ops::contract() && is_named(node, along.index)) return false;
  return has_parallel_loop(node, along.index);
}

std::vector<NodeId> collectives_to_cut(const distribute::DistributedPlan& plan, const TileIndex& along) {
  const std::vector<bool> late = read_by_updates_alone(plan.graph);
  std::vector<NodeId> found;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    const ops::Communication* const op = ops::find_communication(node.op());
    if (op != nullptr && ops::collective_of(op->exchange(node)) && !late[node.result(0).value] &&
        can_be_cut(plan, node.id(), along))
      found.push_back(node.id());
  }
  return found;
}

std::vector<bool> tile_region(const distribute::DistributedPlan& plan, const TileIndex& along,
                              std::span<const NodeId> collectives, TileReach reach) {
  const RegionGrowth growth(plan, along, reach);
  std::vector<bool> region(plan.graph.node_count());
  for (const NodeId collective : collectives)
    if (!region[collective.value])
      for (const NodeId node : growth.around(collective)) region[node.value] = true;
  return region;
}

}  // namespace weft::search
