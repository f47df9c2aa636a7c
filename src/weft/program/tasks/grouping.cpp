#include "weft/program/tasks/grouping.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/grouper.h"
#include "weft/program/tasks/items.h"
#include "weft/program/tasks/loss_tiles.h"

namespace weft::program {

using plan::Dim;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

Grouper::Grouper(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed,
                 bool any_float, std::span<const std::uint32_t> turns, bool accelerated)
    : graph_(graph),
      readers_(readers),
      orders_(readers),
      needed_(needed),
      any_float_(any_float),
      turns_(turns),
      accelerated_(accelerated),
      next_(next_values(graph)) {
  made_.places.resize(graph.value_count());
  made_.group.assign(graph.value_count(), kNoGroup);
  made_.recomputed.assign(graph.value_count(), false);
  made_.buffer_count = graph.value_count();
}

Grouping Grouper::run() {
  for (std::size_t n = 0; n < graph_.node_count(); ++n)
    if (needed_[n]) add(graph_.view(NodeId(n)));
  for (const plan::Output& output : graph_.outputs()) stored(output.value);
  if (!moves_.empty()) {
    for (Group& group : made_.groups)
      for (std::vector<Place>* places : {&group.operands, &group.results})
        for (Place& place : *places) place = moved(place);
    for (Place& place : made_.places) place = moved(place);
  }
  return std::move(made_);
}

void Grouper::add(const NodeView& node) {
  if (node.result_count() > 0 && made_.group[node.result(0).value] != kNoGroup) return;  // with its operand
  if (ops::is_source(node.op())) {
    made_.places[node.result(0).value] = plain_place(BufferId(node.result(0).value), node.result_type(0));
  } else if (is_recomputed(node)) {
    made_.recomputed[node.result(0).value] = true;
  } else if (is_placed_view(node.op())) {
    add_view(node);
  } else if (&node.op() == &ops::local_exchange()) {
    add_exchange(node);
  } else if (&node.op() == &ops::concat() && add_joined(node)) {
    return;
  } else if (is_read_narrow(node)) {
    made_.places[node.result(0).value] = stored(node.input(0));
    made_.group[node.result(0).value] = made_.group[node.input(0).value];
  } else if (runs_by_rows(node)) {
    add_rows(node);
  } else if (is_product(node)) {
    add_product(node);
  } else {
    add_call(node);
  }
}

bool Grouper::is_recomputed(const NodeView& node) const {
  if (&node.op() == &ops::constant() || &node.op() == &ops::position()) return true;
  return ops::is_pointwise(node.op()) && is_lane(node.result_type(0).dtype) &&
         std::ranges::all_of(node.node().inputs, [&](ValueId in) { return made_.recomputed[in.value]; });
}

const Place& Grouper::stored(ValueId value) {
  if (!made_.recomputed[value.value]) return made_.places[value.value];
  const NodeView node = graph_.view(graph_.value(value).producer);
  made_.recomputed[value.value] = false;
  if (ops::is_pointwise(node.op()))
    add_rows(node);
  else
    add_call(node);
  return made_.places[value.value];
}

Place Grouper::plain(ValueId value) {
  const Place place = stored(value);
  if (is_plain(place)) return place;
  return copied_once(value, plain_place({}, graph_.type(value)));
}

Place Grouper::ordered(ValueId value, const Order& order) {
  const Place place = stored(value);
  if (is_in_order(place, order)) return place;
  return copied_once(value, place_in_order({}, graph_.type(value), order));
}

Place Grouper::copied(ValueId value, Place to) {
  to.buffer = BufferId(made_.buffer_count++);
  add_copy(value, made_.places[value.value], to);
  return to;
}

Place Grouper::copied_once(ValueId value, const Place& to) {
  // Not shared across turns, since the copy would be held between them.
  if (!accelerated_ || !turns_.empty()) return copied(value, to);
  std::vector<Place>& known = copied_[value.value];
  for (const Place& place : known)
    if (place.dtype == to.dtype && place.offset == to.offset && std::ranges::equal(place.axes, to.axes))
      return place;
  known.push_back(copied(value, to));
  return known.back();
}

void Grouper::add_copy(ValueId value, const Place& from, const Place& to) {
  Group group{.kind = GroupKind::copy};
  group.operands = {from};
  group.results = {to};
  group.depth = depth_after({{value}});
  if (const auto copy = copies_.find(from.buffer.value); copy != copies_.end())
    group.depth = std::max(group.depth, made_.groups[copy->second].depth + 1);
  mark_read(kNoGroup, {{value}});
  copies_.emplace(to.buffer.value, made_.groups.size());
  made_.groups.push_back(std::move(group));
}

Place Grouper::widened(ValueId value, const Place& place) {
  Place wide = place;
  wide.dtype = plan::DType::f32;
  wide.offset = 0;
  wide.buffer = BufferId(made_.buffer_count++);
  add_copy(value, place, wide);
  return wide;
}

void Grouper::add_view(const NodeView& node) {
  const ValueId from = node.input(0), result = node.result(0);
  Place of = stored(from);
  std::optional<Place> place = view_place(node, of);
  if (!place && is_gathered_split(node)) place = of;
  if (!place) place = view_place(node, of = plain(from));
  made_.places[result.value] = *place;
  // The group of a view of a copy is the copy's; for a view of a concat it is the last part's.
  const auto copy = joined_.contains(of.buffer.value) ? copies_.end() : copies_.find(of.buffer.value);
  made_.group[result.value] =
      copy != copies_.end() ? static_cast<std::uint32_t>(copy->second) : made_.group[from.value];
}

namespace {

bool is_loss_over_classes(const plan::Operator& op) {
  return &op == &ops::cross_entropy() || &op == &ops::cross_entropy_gradient();
}

}  // namespace

bool is_graph_output(const plan::Graph& graph, ValueId value) {
  return std::ranges::any_of(graph.outputs(),
                             [&](const plan::Output& output) { return output.value == value; });
}

bool Grouper::is_read_narrow(const NodeView& node) const {
  if (!any_float_ || !turns_.empty() || &node.op() != &ops::cast()) return false;
  const ValueId wide = node.result(0);
  // A row loop stores values for outside readers, and this cast would not count as one.
  const std::uint32_t maker = made_.group[node.input(0).value];
  if (maker != kNoGroup && made_.groups[maker].kind == GroupKind::rows) return false;
  return is_narrow(node.input_type(0).dtype) && graph_.type(wide).dtype == plan::DType::f32 &&
         !made_.recomputed[node.input(0).value] && !is_graph_output(graph_, wide) &&
         !readers_.of(wide).empty() && std::ranges::all_of(readers_.of(wide), [&](NodeId reader) {
           const NodeView kernel = graph_.view(reader);
           // Operand 1 of an optimizer is the gradient; operand 0 of a loss are the logits.
           const std::size_t taken = accelerated_ && is_optimizer(kernel.op()) ? 1 : 0;
           return (taken == 1 || is_loss_over_classes(kernel.op())) && kernel.input(taken) == wide &&
                  std::ranges::count(kernel.node().inputs, wide) == 1;
         });
}

std::optional<ValueId> Grouper::narrow_result(const NodeView& node) const {
  if (!any_float_ || !turns_.empty() || &node.op() != &ops::cross_entropy_gradient()) return {};
  const auto readers = readers_.of(node.result(0));
  if (readers.size() != 1 || is_graph_output(graph_, node.result(0))) return {};
  const NodeView cast = graph_.view(readers.front());
  if (&cast.op() != &ops::cast() || !is_narrow(cast.result_type(0).dtype) || !needed_[cast.id().value])
    return {};
  return cast.result(0);
}

bool Grouper::is_logits(const NodeView& product, const Place& place) const {
  const ValueId logits = product.result(0);
  const auto loss_reads = [&](NodeId reader, ValueId value) {
    const NodeView loss = graph_.view(reader);
    return is_loss_over_classes(loss.op()) && loss.input(0) == value && place.stride(loss.symbol(0)) == 1;
  };
  return accelerated_ && turns_.empty() && !is_graph_output(graph_, logits) && !readers_.of(logits).empty() &&
         std::ranges::all_of(readers_.of(logits), [&](NodeId reader) {
           const NodeView cast = graph_.view(reader);
           if (!is_read_narrow(cast)) return loss_reads(reader, logits);
           return std::ranges::all_of(readers_.of(cast.result(0)),
                                      [&](NodeId loss) { return loss_reads(loss, cast.result(0)); });
         });
}

bool Grouper::feeds_products(ValueId value) const {
  return accelerated_ && turns_.empty() && !is_graph_output(graph_, value) && !readers_.of(value).empty() &&
         std::ranges::all_of(readers_.of(value),
                             [&](NodeId reader) { return is_product(graph_.view(reader)); });
}

std::optional<Place> Grouper::in_even_rows(const NodeView& loss) {
  if (!accelerated_ || !is_loss_over_classes(loss.op())) return {};
  const Place place = stored(loss.input(0));
  std::vector<Dim> row, rest;
  for (const Dim& dim : loss.input_type(0).dims) (dim.index == loss.symbol(0) ? row : rest).push_back(dim);
  if (!has_rows(place, row) || !step_along(place, rest)) return {};
  return place;
}

void Grouper::add_call(const NodeView& node) {
  Group group{.kind = GroupKind::call, .nodes = {node.id()}};
  if (accepts_any_rows(node)) return add_attention(node);
  if (&node.op() == &ops::scatter_add() && add_scatter_split(node)) return;
  if (accelerated_ && &node.op() == &ops::rotary()) {
    // Pairs are rotated in their own layout, which the result keeps.
    group.operands = {stored(node.input(0))};
    group.results = {
        place_in_order(BufferId(node.result(0).value), node.result_type(0), order_of(group.operands[0]))};
    return finish(std::move(group), node);
  }
  const std::vector<Symbol> row = rows_over(node);
  const auto in_rows = [&](const plan::Type& type) {
    Order order;
    const auto add = [&](Symbol index) {
      if (type.has(index) && std::ranges::find(order, index) == order.end()) order.push_back(index);
    };
    for (const Dim& dim : node.input_type(0).dims)
      if (std::ranges::find(row, dim.index) == row.end()) add(dim.index);
    for (const Symbol index : row) add(index);
    for (const Dim& dim : type.dims) add(dim.index);  // indices added by the operator
    return order;
  };
  // Accelerators have kernels for all types; those of the CPU convert operands to f32 and round
  // results.
  const bool in_f32 = !any_float_ && computes_in_f32(node);
  bool rounds = false;
  for (const ValueId input : node.node().inputs) {
    if (const auto even = in_even_rows(node); even && group.operands.empty()) {
      group.operands.push_back(*even);
      continue;
    }
    const bool apart = &node.op() == &ops::gather() && group.operands.size() == 1 &&
                       stored(input).find(node.symbol(0)) == nullptr;
    if (apart) {
      group.operands.push_back(stored(input));
      continue;
    }
    Place place = row.empty() ? plain(input) : ordered(input, in_rows(graph_.type(input)));
    group.operands.push_back(in_f32 && is_narrow(place.dtype) ? widened(input, place) : place);
  }
  const std::optional<ValueId> narrow = narrow_result(node);
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const ValueId result = narrow.value_or(node.result(k));
    const plan::Type type = graph_.type(result);
    const BufferId buffer(result.value);
    group.results.push_back(row.empty() ? plain_place(buffer, type)
                                        : place_in_order(buffer, type, in_rows(type)));
    if (&node.op() == &ops::cross_entropy_gradient() && feeds_products(result))
      group.results.back() = with_even_rows(group.results.back());
    rounds |= in_f32 && is_narrow(type.dtype);
  }
  if (&node.op() == &ops::linear_cross_entropy() && why_reference_op(node).empty()) {
    Place room{BufferId(made_.buffer_count++), 0, plan::DType::f32, {}};
    room.axes.push_back({Symbol(), loss_tiles(node).room(), 1});
    group.results.push_back(room);
  }
  if (!rounds) {
    if (is_optimizer(node.op())) write_in_place(node, group);
    finish(std::move(group), node);
    if (narrow) set(*narrow, made_.places[node.result(0).value], made_.group[node.result(0).value]);
    return;
  }
  const std::vector<Place> rounded = group.results;
  for (Place& place : group.results)
    if (is_narrow(place.dtype)) {
      place.dtype = plan::DType::f32;
      place.buffer = BufferId(made_.buffer_count++);
    }
  const std::vector<Place> wide = group.results;
  finish(std::move(group), node);
  const std::uint32_t depth = made_.groups.back().depth;
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    if (wide[k].dtype == rounded[k].dtype) continue;
    add_copy(node.result(k), wide[k], rounded[k]);
    made_.groups.back().depth = std::max(made_.groups.back().depth, depth + 1);
    set(node.result(k), rounded[k], static_cast<std::uint32_t>(made_.groups.size() - 1));
  }
}

// Operands keep their layout if their rows are contiguous there; results have the order of the
// queries.
void Grouper::add_attention(const NodeView& node) {
  Group group{.kind = GroupKind::call, .nodes = {node.id()}};
  const auto with_row_last = [](const Order& from, std::span<const Dim> row) {
    Order order;
    for (const Symbol index : from)
      if (std::ranges::find(row, index, &Dim::index) == row.end()) order.push_back(index);
    for (const Dim& dim : row) order.push_back(dim.index);
    return order;
  };
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const std::vector<Dim> row = row_of_operand(node, i);
    const Place at = stored(node.input(i));
    if (has_rows(at, row)) {
      group.operands.push_back(at);
      continue;
    }
    Order own;
    for (const Dim& dim : node.input_type(i).dims) own.push_back(dim.index);
    group.operands.push_back(ordered(node.input(i), with_row_last(own, row)));
  }
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const plan::Type type = node.result_type(k);
    const bool is_gradient = node.result_count() == 3;
    Order like;  // the result's indices in the order of the corresponding operand
    for (const Symbol index : order_of(group.operands[is_gradient ? k : 0]))
      if (type.has(index)) like.push_back(index);
    for (const Dim& dim : type.dims)
      if (std::ranges::find(like, dim.index) == like.end()) like.push_back(dim.index);
    group.results.push_back(
        place_in_order(BufferId(node.result(k).value), type, with_row_last(like, row_of_result(node, k))));
  }
  finish(std::move(group), node);
}

void Grouper::write_in_place(const NodeView& node, Group& group) const {
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const std::size_t renewed = k == 0 ? 0 : k + 1;  // operand 1 is the gradient and is not updated
    const ValueId source = node.input(renewed);
    if (next_[source.value] == node.result(k) && readers_.of(node.result(k)).empty())
      group.results[k] = group.operands[renewed];
  }
}

void Grouper::finish(Group group, const NodeView& node, std::span<const ValueId> also) {
  const auto id = static_cast<std::uint32_t>(made_.groups.size());
  group.depth = std::max(depth_after(node.node().inputs), depth_after(also));
  for (const Place& place : group.operands)
    if (const auto copy = copies_.find(place.buffer.value); copy != copies_.end())
      group.depth = std::max(group.depth, made_.groups[copy->second].depth + 1);
  mark_read(id, node.node().inputs);
  mark_read(id, also);
  for (std::size_t k = 0; k < node.result_count(); ++k) set(node.result(k), group.results[k], id);
  made_.groups.push_back(std::move(group));
  ++heavy_;
}

void Grouper::set(ValueId value, const Place& place, std::uint32_t group) {
  made_.places[value.value] = place;
  made_.group[value.value] = group;
}

std::uint32_t Grouper::depth_after(std::span<const ValueId> values, std::uint32_t except) const {
  std::uint32_t depth = 0;
  for (const ValueId value : values) {
    const std::uint32_t group = made_.group[value.value];
    if (group != kNoGroup && group != except) depth = std::max(depth, made_.groups[group].depth + 1);
  }
  return depth;
}

void Grouper::mark_read(std::uint32_t reader, std::span<const ValueId> values) {
  for (const ValueId value : values) {
    const std::uint32_t group = made_.group[value.value];
    if (group != kNoGroup && group != reader) made_.groups[group].is_read = true;
  }
}

std::vector<ValueId> next_values(const plan::Graph& graph) {
  std::unordered_map<std::string_view, ValueId> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() == &ops::parameter() || &node.op() == &ops::state())
      sources.emplace(node.word(0), node.result(0));
  }
  std::vector<ValueId> next(graph.value_count());
  for (const plan::Output& output : graph.outputs()) {
    const auto source = sources.find(graph.updated(output));
    if (source != sources.end()) next[source->second.value] = output.value;
  }
  return next;
}

bool is_optimizer(const plan::Operator& op) {
  return &op == &ops::sgd() || &op == &ops::momentum() || &op == &ops::adam() || &op == &ops::adamw();
}

bool is_accumulated(const Group& group, const NodeView& node) {
  if (&node.op() != &ops::reduce() && &node.op() != &ops::contract()) return false;
  const plan::Type to = node.result_type(0);
  for (std::size_t i = 0; i < group.domain.size() - group.row; ++i)
    if (!to.has(group.domain[i].index)) return true;
  return false;
}

Grouping group_nodes(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed,
                     bool any_float, std::span<const std::uint32_t> turns, bool accelerated) {
  return Grouper(graph, readers, needed, any_float, turns, accelerated).run();
}

}  // namespace weft::program
