#include "weft/program/grouping.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "weft/ops/local_exchange.h"
#include "weft/ops/operators.h"
#include "weft/ops/pointwise.h"
#include "weft/plan/layout.h"
#include "weft/program/exchange.h"
#include "weft/program/matrix_product.h"

namespace weft::program {
namespace {

using plan::Dim;
using plan::DType;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

bool is_norm(const plan::Operator& op) { return &op == &ops::layer_norm() || &op == &ops::rms_norm(); }

bool contains(std::span<const Dim> dims, Symbol index) {
  return std::ranges::any_of(dims, [&](const Dim& dim) { return dim.index == index; });
}

class Grouper {
 public:
  Grouper(const plan::Graph& graph, const Readers& readers, const std::vector<bool>& needed, bool any_float)
      : graph_(graph), readers_(readers), needed_(needed), any_float_(any_float), next_(next_values(graph)) {
    made_.places.resize(graph.value_count());
    made_.group.assign(graph.value_count(), kNoGroup);
    made_.recomputed.assign(graph.value_count(), false);
    made_.buffer_count = graph.value_count();
  }

  Grouping run() {
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      if (needed_[n]) add(graph_.view(NodeId(n)));
    for (const plan::Output& output : graph_.outputs()) stored(output.value);
    return std::move(made_);
  }

 private:
  void add(const NodeView& node) {
    if (ops::is_source(node.op())) {
      made_.places[node.result(0).value] = plain_place(BufferId(node.result(0).value), node.result_type(0));
    } else if (is_recomputed(node)) {
      made_.recomputed[node.result(0).value] = true;
    } else if (is_placed_view(node.op())) {
      add_view(node);
    } else if (&node.op() == &ops::local_exchange()) {
      add_exchange(node);
    } else if (runs_by_rows(node)) {
      add_rows(node);
    } else if (is_product(node)) {
      add_product(node);
    } else {
      add_call(node);
    }
  }

  bool is_float(DType dtype) const { return dtype == DType::f32 || (any_float_ && is_real(dtype)); }
  // Lanes are floats: truth is 1 or 0 there.
  bool is_lane(DType dtype) const { return is_float(dtype) || dtype == DType::boolean; }

  // Constants, positions, and pointwise functions of these alone.
  bool is_recomputed(const NodeView& node) const {
    if (&node.op() == &ops::constant() || &node.op() == &ops::position()) return true;
    return ops::is_pointwise(node.op()) && is_lane(node.result_type(0).dtype) &&
           std::ranges::all_of(node.node().inputs, [&](ValueId in) { return made_.recomputed[in.value]; });
  }

  // The place of a value, stored now if it was not meant to be.
  const Place& stored(ValueId value) {
    if (!made_.recomputed[value.value]) return made_.places[value.value];
    const NodeView node = graph_.view(graph_.value(value).producer);
    made_.recomputed[value.value] = false;
    if (ops::is_pointwise(node.op()))
      add_rows(node);
    else
      add_call(node);
    return made_.places[value.value];
  }

  // The same in the order of its type and without gaps.
  Place plain(ValueId value) {
    const Place place = stored(value);
    if (is_plain(place)) return place;
    return copied(value, plain_place({}, graph_.type(value)));
  }

  // The same in that order and without gaps.
  Place ordered(ValueId value, const Order& order) {
    const Place place = stored(value);
    if (lies_in(place, order)) return place;
    return copied(value, place_in_order({}, graph_.type(value), order));
  }

  Place copied(ValueId value, Place to) {
    to.buffer = BufferId(made_.buffer_count++);
    add_copy(value, made_.places[value.value], to);
    return to;
  }

  // `from` is the value's place, or a part of it.
  void add_copy(ValueId value, const Place& from, const Place& to) {
    Group group{.kind = GroupKind::copy};
    group.operands = {from};
    group.results = {to};
    group.depth = depth_after({{value}});
    mark_read(kNoGroup, {{value}});
    copies_.emplace(to.buffer.value, made_.groups.size());
    made_.groups.push_back(std::move(group));
  }

  void add_view(const NodeView& node) {
    const ValueId from = node.input(0), result = node.result(0);
    Place of = stored(from);
    std::optional<Place> place = view_place(node, of);
    if (!place) place = view_place(node, of = plain(from));
    made_.places[result.value] = *place;
    // A view of a copy is made by the copy.
    const auto copy = copies_.find(of.buffer.value);
    made_.group[result.value] =
        copy != copies_.end() ? static_cast<std::uint32_t>(copy->second) : made_.group[from.value];
  }

  // -- rows ---------------------------------------------------------------------------------------

  bool runs_by_rows(const NodeView& node) const {
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (!is_lane(node.input_type(i).dtype) && !made_.recomputed[node.input(i).value]) return false;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (!is_lane(node.result_type(k).dtype)) return false;
    if (ops::is_pointwise(node.op()) || &node.op() == &ops::cast()) return true;
    if (&node.op() == &ops::reduce()) return is_float(node.input_type(0).dtype);
    if (&node.op() == &ops::contract()) {
      if (node.input_count() > 2 || !is_float(node.result_type(0).dtype)) return false;
      return node.input_count() == 1 || !has_all_parts(node);
    }
    if (&node.op() == &ops::softmax() || is_norm(node.op())) {
      if (made_.recomputed[node.input(0).value]) return false;
      // The row must end the order in memory.
      const Order order = order_of(made_.places[node.input(0).value]);
      const std::span<const Symbol> over = node.indices(0);
      for (std::size_t i = 0; i < over.size(); ++i)
        if (std::ranges::find(over, order[order.size() - 1 - i]) == over.end()) return false;
      return true;
    }
    return false;
  }

  // Rows, columns and a sum: a matrix product. With one of them missing memory is the limit, and a
  // pass over the larger operand is as good.
  static bool has_all_parts(const NodeView& node) {
    const plan::Type a = node.input_type(0), b = node.input_type(1), c = node.result_type(0);
    bool rows = false, columns = false, sums = false;
    for (const Dim& dim : a.dims) {
      if (dim.size == 1) continue;
      rows |= !b.has(dim.index) && c.has(dim.index);
      sums |= b.has(dim.index) && !c.has(dim.index);
    }
    for (const Dim& dim : b.dims) columns |= dim.size > 1 && !a.has(dim.index) && c.has(dim.index);
    return rows && columns && sums;
  }

  // What the node runs over, in the order of the operand that has it all.
  std::vector<Dim> domain_of(const NodeView& node) const {
    std::vector<Dim> all;
    if (ops::is_pointwise(node.op())) {
      all.assign(node.result_type(0).dims.begin(), node.result_type(0).dims.end());
    } else {
      for (std::size_t i = 0; i < node.input_count(); ++i)
        for (const Dim& dim : node.input_type(i).dims)
          if (!contains(all, dim.index)) all.push_back(dim);
    }
    for (const ValueId input : node.node().inputs) {
      if (made_.recomputed[input.value] || graph_.type(input).rank() != all.size()) continue;
      std::vector<Dim> ordered;
      for (const Symbol index : order_of(made_.places[input.value]))
        ordered.push_back(*std::ranges::find(all, index, &Dim::index));
      return ordered;
    }
    return all;
  }

  // How the node would have the row: `fixed` when it must be exactly that.
  struct Row {
    std::size_t size;
    bool fixed;
  };

  static std::optional<Row> row_wish(const NodeView& node, std::span<const Dim> domain) {
    if (&node.op() == &ops::softmax() || is_norm(node.op())) return Row{node.indices(0).size(), true};
    if (&node.op() != &ops::reduce() && &node.op() != &ops::contract()) return std::nullopt;
    const plan::Type to = node.result_type(0);
    if (to.rank() == domain.size()) return std::nullopt;
    const bool keeps_last = to.has(domain.back().index);
    std::size_t size = 0;
    while (size < domain.size() && to.has(domain[domain.size() - 1 - size].index) == keeps_last) ++size;
    return Row{size, !keeps_last};
  }

  // True when the group can take the node as well; the group's row is then as both need it.
  bool fits(const Group& group, const NodeView& node, std::span<const Dim> domain, Row& row) const {
    if (group.kind != GroupKind::rows) return false;
    row = {group.row, group.row_fixed};
    const std::size_t outer = group.domain.size() - group.row;
    if (domain.size() == outer && group.row_fixed && group.row > 0 && ops::is_pointwise(node.op())) {
      // Work on one number a row.
      return std::ranges::equal(domain, std::span(group.domain).first(outer));
    }
    if (!std::ranges::equal(domain, group.domain)) return false;
    const std::optional<Row> wish = row_wish(node, domain);
    if (!wish) return true;
    if (wish->fixed && row.fixed) {
      // A reduction of the row and more sums the rest up outside.
      return wish->size == row.size || (is_reduction(node) && wish->size > row.size);
    }
    if (wish->fixed) {
      if (wish->size > row.size) return false;
      row = *wish;
      return true;
    }
    if (row.fixed) return wish->size >= row.size;
    row.size = std::min(row.size, wish->size);
    return true;
  }

  bool has_even_operands(const NodeView& node, std::span<const Dim> domain, std::size_t row) const {
    return std::ranges::all_of(node.node().inputs, [&](ValueId input) {
      return made_.recomputed[input.value] || step_along(made_.places[input.value], domain.last(row));
    });
  }

  static bool is_reduction(const NodeView& node) {
    return &node.op() == &ops::reduce() || &node.op() == &ops::contract();
  }

  void add_rows(const NodeView& node) {
    // A recomputed operand that lanes cannot hold as numbers of a row is stored by its reader.
    const std::vector<Dim> domain = domain_of(node);
    std::uint32_t joined = kNoGroup;
    Row row{domain.size(), false};
    // The latest group first: the others are more likely to be done before it.
    std::vector<std::uint32_t> candidates;
    for (const ValueId input : node.node().inputs)
      if (made_.group[input.value] != kNoGroup) candidates.push_back(made_.group[input.value]);
    std::ranges::sort(candidates, [&](std::uint32_t x, std::uint32_t y) {
      return made_.groups[x].depth > made_.groups[y].depth;
    });
    for (const std::uint32_t candidate : candidates) {
      if (!may_join(candidate, node)) continue;
      Row needed = row;
      if (!fits(made_.groups[candidate], node, domain, needed)) continue;
      joined = candidate;
      row = needed;
      break;
    }
    if (joined == kNoGroup) {
      joined = static_cast<std::uint32_t>(made_.groups.size());
      if (const auto wish = row_wish(node, domain)) row = {wish->size, wish->fixed};
      // What a shorter row does not sum is summed over the rows.
      while (is_reduction(node) && row.fixed && row.size > 1 && !has_even_operands(node, domain, row.size))
        --row.size;
      made_.groups.push_back({.kind = GroupKind::rows, .domain = domain});
      made_.groups.back().depth = depth_after(node.node().inputs);
    } else if (!made_.groups[joined].is_read) {
      made_.groups[joined].depth =
          std::max(made_.groups[joined].depth, depth_after(node.node().inputs, joined));
    }
    Group& group = made_.groups[joined];
    group.row = row.size;
    group.row_fixed = row.fixed;
    group.nodes.push_back(node.id());
    group.heavy_before = heavy_;
    mark_read(joined, node.node().inputs);
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const plan::Type type = node.result_type(k);
      Order order;
      for (const Dim& dim : group.domain)
        if (type.has(dim.index)) order.push_back(dim.index);
      set(node.result(k), place_in_order(BufferId(node.result(k).value), type, order), joined);
    }
  }

  // Not when an operand is ready only after the group: its own sums, or what depends on it. Nor when
  // the group is long past and joining it saves no store: the backward pass would then compute what
  // it needs during the forward pass, and keep it.
  bool may_join(std::uint32_t candidate, const NodeView& node) const {
    const Group& group = made_.groups[candidate];
    if (group.heavy_before != heavy_ && !std::ranges::any_of(node.node().inputs, [&](ValueId input) {
          return made_.group[input.value] == candidate && readers_.of(input).size() == 1;
        }))
      return false;
    for (const ValueId input : node.node().inputs) {
      if (made_.recomputed[input.value]) continue;
      if (made_.group[input.value] == candidate) {
        const ValueId value = owner(input);
        const NodeView producer = graph_.view(graph_.value(value).producer);
        if (is_accumulated(group, producer)) return false;
        // A view that reads the group's rows in another order needs them all.
        if (value != input) return false;
      } else if (group.is_read && depth_after({&input, 1}) > group.depth) {
        return false;
      }
    }
    return true;
  }

  ValueId owner(ValueId value) const {
    const std::uint32_t buffer = made_.places[value.value].buffer.value;
    return buffer < graph_.value_count() ? ValueId(buffer) : value;
  }

  // -- products, calls ----------------------------------------------------------------------------

  bool is_product(const NodeView& node) const {
    return &node.op() == &ops::contract() && node.input_count() == 2 && is_float(node.result_type(0).dtype);
  }

  void add_product(const NodeView& node) {
    Place a = stored(node.input(0)), b = stored(node.input(1));
    const auto place_c = [&] {
      return place_in_order(BufferId(node.result(0).value), node.result_type(0),
                            choose_product_order(node, a, b, readers_));
    };
    Place c = place_c();
    if (!as_matrix_product(a, b, c)) {
      a = plain(node.input(0));
      b = plain(node.input(1));
      c = place_c();
      if (!as_matrix_product(a, b, c)) {
        // Neither order has a side of stride 1 where it is needed: move the summed indices to the end.
        a = copied(node.input(0), with_sums_last(node, 0));
        b = copied(node.input(1), with_sums_last(node, 1));
        c = plain_place(BufferId(node.result(0).value), node.result_type(0));
        if (!as_matrix_product(a, b, c)) return add_call(node);
      }
    }
    Group group{.kind = GroupKind::product, .nodes = {node.id()}};
    group.operands = {a, b};
    group.results = {c};
    finish(std::move(group), node);
  }

  Place with_sums_last(const NodeView& node, std::size_t operand) const {
    const plan::Type type = node.input_type(operand), to = node.result_type(0);
    Order order;
    for (const bool summed : {false, true})
      for (const Dim& dim : type.dims)
        if (to.has(dim.index) != summed) order.push_back(dim.index);
    return place_in_order({}, type, order);
  }

  void add_call(const NodeView& node) {
    Group group{.kind = GroupKind::call, .nodes = {node.id()}};
    for (const ValueId input : node.node().inputs) group.operands.push_back(plain(input));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      group.results.push_back(plain_place(BufferId(node.result(k).value), node.result_type(k)));
    if (is_optimizer(node.op())) write_in_place(node, group);
    finish(std::move(group), node);
  }

  // Ranks with other shares must lay out the same elements in the same order, so the order follows from the
  // type alone, never from what would suit this rank. Exchanges go in the plan's order on every rank, so each
  // one waits for the one before it as if it read its result.
  void add_exchange(const NodeView& node) {
    const ops::LocalExchange what = ops::read_local_exchange(node);
    Group group{.kind = GroupKind::exchange, .nodes = {node.id()}};
    if (what.kind == ops::ExchangeKind::all_to_all) {
      if (what.gives) group.operands = {staged(node, what)};
    } else if (what.gives) {
      group.operands = {ordered(node.input(0), exchange_order(node.input_type(0), what))};
    }
    const plan::Type to = node.result_type(0);
    group.results = {place_in_order(BufferId(node.result(0).value), to, exchange_order(to, what))};
    finish(std::move(group), node);
    Group& made = made_.groups.back();
    if (last_exchange_ != kNoGroup) {
      made.depth = std::max(made.depth, made_.groups[last_exchange_].depth + 1);
      made_.groups[last_exchange_].is_read = true;
    }
    last_exchange_ = static_cast<std::uint32_t>(made_.groups.size() - 1);
  }

  // What goes to one rank of an all-to-all lies together, in the order in which that rank keeps it. Blocks of
  // an even size move as one copy, with the ranks for an index; the shorter last one moves by itself.
  Place staged(const NodeView& node, const ops::LocalExchange& what) {
    const plan::Type type = node.input_type(0);
    const std::int64_t whole = type.size_of(what.parts);
    const std::int64_t block = plan::share_of(whole, what.ranks, 0).size, even = whole / block;
    const std::int64_t step = type.elements() / whole;
    const BufferId buffer(made_.buffer_count++);
    for (const bool rest : {false, true}) {
      const std::int64_t count = rest ? 1 : even, size = rest ? whole % block : block;
      if (size == 0) continue;
      Place from = stored(node.input(0));
      const Axis parted = *from.find(what.parts);
      std::vector<Dim> dims(type.dims.begin(), type.dims.end());
      dims[static_cast<std::size_t>(type.position(what.parts))].size = size;
      const plan::Type one{type.dtype, dims};
      Place to = place_in_order(buffer, one, exchange_order(one, what));
      for (Axis& axis : from.axes)
        if (axis.index == what.parts) axis.size = size;
      from.offset += rest ? even * block * parted.stride : 0;
      to.offset = rest ? even * block * step : 0;
      from.axes.push_back({Symbol(), count, block * parted.stride});
      to.axes.push_back({Symbol(), count, block * step});
      add_copy(node.input(0), from, to);
    }
    Place all{buffer, 0, type.dtype, {}};
    all.axes.push_back({Symbol(), type.elements(), 1});
    return all;
  }

  // An optimizer's results take the place of the parameter and the moments they renew.
  void write_in_place(const NodeView& node, Group& group) const {
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const std::size_t renewed = k == 0 ? 0 : k + 1;  // the gradient, operand 1, has no successor
      const ValueId source = node.input(renewed);
      if (next_[source.value] == node.result(k) && readers_.of(node.result(k)).empty())
        group.results[k] = group.operands[renewed];
    }
  }

  void finish(Group group, const NodeView& node) {
    const auto id = static_cast<std::uint32_t>(made_.groups.size());
    group.depth = depth_after(node.node().inputs);
    for (const Place& place : group.operands)
      if (const auto copy = copies_.find(place.buffer.value); copy != copies_.end())
        group.depth = std::max(group.depth, made_.groups[copy->second].depth + 1);
    mark_read(id, node.node().inputs);
    for (std::size_t k = 0; k < node.result_count(); ++k) set(node.result(k), group.results[k], id);
    made_.groups.push_back(std::move(group));
    ++heavy_;
  }

  void set(ValueId value, const Place& place, std::uint32_t group) {
    made_.places[value.value] = place;
    made_.group[value.value] = group;
  }

  // Past every group that makes one of `values`, other than `except`.
  std::uint32_t depth_after(std::span<const ValueId> values, std::uint32_t except = kNoGroup) const {
    std::uint32_t depth = 0;
    for (const ValueId value : values) {
      const std::uint32_t group = made_.group[value.value];
      if (group != kNoGroup && group != except) depth = std::max(depth, made_.groups[group].depth + 1);
    }
    return depth;
  }

  void mark_read(std::uint32_t reader, std::span<const ValueId> values) {
    for (const ValueId value : values) {
      const std::uint32_t group = made_.group[value.value];
      if (group != kNoGroup && group != reader) made_.groups[group].is_read = true;
    }
  }

  const plan::Graph& graph_;
  const Readers& readers_;
  const std::vector<bool>& needed_;
  const bool any_float_;
  const std::vector<ValueId> next_;
  Grouping made_;
  std::uint32_t heavy_ = 0;                                // products, calls and exchanges so far
  std::uint32_t last_exchange_ = kNoGroup;                 // the group of the latest
  std::unordered_map<std::uint32_t, std::size_t> copies_;  // by the buffer of the copy: its group
};

}  // namespace

std::vector<ValueId> next_values(const plan::Graph& graph) {
  std::unordered_map<std::string_view, ValueId> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() == &ops::parameter() || &node.op() == &ops::state())
      sources.emplace(node.word(0), node.result(0));
  }
  std::vector<ValueId> next(graph.value_count());
  constexpr std::string_view kPrefix = "next ";
  for (const plan::Output& output : graph.outputs()) {
    const std::string_view name = graph.text(output.name);
    if (!name.starts_with(kPrefix)) continue;
    const auto source = sources.find(name.substr(kPrefix.size()));
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
                     bool any_float) {
  return Grouper(graph, readers, needed, any_float).run();
}

}  // namespace weft::program
