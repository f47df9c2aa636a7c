#include "weft/program/tasks/order.h"

#include <algorithm>
#include <array>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/exchange.h"
#include "weft/program/tasks/items.h"
#include "weft/program/tasks/matrix_product.h"

namespace weft::program {
namespace {

using plan::NodeView;
using plan::ValueId;

// A node that reads the result, possibly after pointwise nodes and renames.
struct Reader {
  NodeView node;
  std::size_t operand;
  std::vector<Symbol> names;  // its names for the result's indices, in the order of the result's type
};

// Follows the result through nodes that keep its order to those that depend on it.
void find_readers(const plan::Graph& graph, ValueId value, const std::vector<Symbol>& names,
                  const Readers& readers, int depth, std::vector<Reader>& found) {
  constexpr int kDeepest = 12;
  constexpr std::size_t kMost = 16;
  for (const plan::NodeId id : readers.of(value)) {
    if (found.size() >= kMost) return;
    const NodeView node = graph.view(id);
    if (&node.op() == &ops::rename()) {
      std::vector<Symbol> renamed = names;
      for (std::size_t i = 0; i < node.indices(0).size(); ++i)
        for (std::size_t k = 0; k < names.size(); ++k)
          if (names[k] == node.indices(0)[i]) renamed[k] = node.indices(1)[i];
      if (depth < kDeepest) find_readers(graph, node.result(0), renamed, readers, depth + 1, found);
    } else if (&node.op() == &ops::transpose() ||
               (ops::is_pointwise(node.op()) && node.result_type(0).rank() == names.size())) {
      if (depth < kDeepest) find_readers(graph, node.result(0), names, readers, depth + 1, found);
    } else {
      for (std::size_t i = 0; i < node.input_count(); ++i)
        if (node.input(i) == value) found.push_back({node, i, names});
    }
  }
}

bool has(std::span<const Symbol> list, Symbol index) { return std::ranges::find(list, index) != list.end(); }

bool is_product(const NodeView& node) { return &node.op() == &ops::contract() && node.input_count() == 2; }

Order wanted_by_exchange(const NodeView& node, std::size_t operand) {
  return exchange_order(node.input_type(operand), ops::read_local_exchange(node));
}

void append(Order& order, std::span<const plan::Dim> dims, const auto& wanted) {
  for (const plan::Dim& dim : dims)
    if (wanted(dim.index) && !has(order, dim.index)) order.push_back(dim.index);
}

// The order that a reader prefers; for a contraction: kept indices, summed ones, the rest. As
// positions in the result's type, since the reader may use other index names.
std::vector<std::size_t> wished_order(const Reader& reader) {
  Order order;
  if (is_product(reader.node)) {
    const plan::Type own = reader.node.input_type(reader.operand);
    const plan::Type other = reader.node.input_type(1 - reader.operand);
    const plan::Type to = reader.node.result_type(0);
    append(order, to.dims, [&](Symbol i) { return own.has(i) && !other.has(i); });
    append(order, other.dims, [&](Symbol i) { return own.has(i) && !to.has(i); });
    append(order, own.dims, [](Symbol) { return true; });
  } else {
    order = wanted_by_exchange(reader.node, reader.operand);
  }
  std::vector<std::size_t> positions;
  for (const Symbol index : order)
    positions.push_back(
        static_cast<std::size_t>(std::ranges::find(reader.names, index) - reader.names.begin()));
  return positions;
}

// Additional seconds of a reader if the result is stored at `place`.
double reader_cost(const Reader& reader, const Place& place) {
  constexpr double kSecondsPerCopiedElement = 1e-9;
  const double copy = kSecondsPerCopiedElement * static_cast<double>(place.elements());
  const NodeView& node = reader.node;
  Place seen = place;
  for (std::size_t i = 0; i < seen.axes.size(); ++i) seen.axes[i].index = reader.names[i];
  if (is_product(node)) {
    const plan::Type other_type = node.input_type(1 - reader.operand);
    const Place other = plain_place({}, other_type);
    double best = -1;
    // The order of its own result is free, so the better of two counts.
    for (const bool own_first : {true, false}) {
      Order order;
      const plan::Type to = node.result_type(0);
      const auto shared = [&](Symbol i) { return seen.find(i) != nullptr && other.find(i) != nullptr; };
      append(order, to.dims, shared);
      for (const Symbol index : order_of(own_first ? seen : other))
        if (to.has(index) && !has(order, index)) order.push_back(index);
      for (const Symbol index : order_of(own_first ? other : seen))
        if (to.has(index) && !has(order, index)) order.push_back(index);
      const auto product = as_matrix_product(seen, other, place_in_order({}, to, order));
      if (product && (best < 0 || product->estimate() < best)) best = product->estimate();
    }
    return best < 0 ? 10 * copy + 1e-3 : best;
  }
  std::span<const Symbol> over;
  if (&node.op() == &ops::softmax() || &node.op() == &ops::layer_norm() || &node.op() == &ops::rms_norm()) {
    over = node.indices(0);
    const Order order = order_of(seen);
    for (std::size_t i = 0; i < over.size(); ++i)
      if (!has(over, order[order.size() - 1 - i])) return 4 * copy;
    return 0;
  }
  if (&node.op() == &ops::reduce() || &node.op() == &ops::contract()) return 0;
  if (&node.op() == &ops::local_exchange())
    return is_in_order(seen, wanted_by_exchange(node, reader.operand)) ? 0 : copy;
  if (accepts_any_rows(node)) return has_rows(seen, row_of_operand(node, reader.operand)) ? 0 : copy;
  return is_plain(seen) ? 0 : copy;
}

// Everything that a choice depends on, as integers: the operands' layouts, and what reads the
// result under which names.
std::vector<std::uint64_t> key_of(const plan::NodeView& contraction, const Place& a, const Place& b,
                                  std::span<const Reader> readers) {
  std::vector<std::uint64_t> key;
  const auto type = [&](ValueId value) { return contraction.graph().value(value).type.value; };
  const auto add_symbols = [&](std::span<const Symbol> symbols) {
    key.push_back(symbols.size());
    for (const Symbol symbol : symbols) key.push_back(symbol.value);
  };
  key.push_back(type(contraction.result(0)));
  for (const Place* place : {&a, &b}) {
    key.push_back(place->axes.size());
    for (const Axis& axis : place->axes) {
      key.push_back(axis.index.value);
      key.push_back(static_cast<std::uint64_t>(axis.size));
      key.push_back(static_cast<std::uint64_t>(axis.stride));
    }
  }
  for (const Reader& reader : readers) {
    const NodeView& node = reader.node;
    key.push_back(reinterpret_cast<std::uintptr_t>(&node.op()));
    add_symbols(reader.names);
    if (&node.op() == &ops::local_exchange()) {
      // Other operands of the exchange do not matter.
      key.push_back(type(node.input(reader.operand)));
      add_symbols(wanted_by_exchange(node, reader.operand));
      continue;
    }
    key.push_back(reader.operand);
    for (const ValueId input : node.node().inputs) key.push_back(type(input));
    key.push_back(type(node.result(0)));
    if (&node.op() == &ops::softmax() || &node.op() == &ops::layer_norm() || &node.op() == &ops::rms_norm())
      add_symbols(node.indices(0));
    if (accepts_any_rows(node))
      for (const plan::Dim& dim : row_of_operand(node, reader.operand)) key.push_back(dim.index.value);
  }
  return key;
}

Order best_order(const NodeView& contraction, const Place& a, const Place& b, std::span<const Reader> found,
                 const std::vector<Symbol>& names);

}  // namespace

Readers::Readers(const plan::Graph& graph) : begins_(graph.value_count() + 1) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const ValueId input : graph.node(plan::NodeId(n)).inputs) ++begins_[input.value + 1];
  for (std::size_t v = 0; v < graph.value_count(); ++v) begins_[v + 1] += begins_[v];
  nodes_.resize(begins_.back());
  std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const ValueId input : graph.node(plan::NodeId(n)).inputs)
      nodes_[next[input.value]++] = plan::NodeId(n);
}

Order order_of(const Place& place) {
  InlineVector<Axis, 6> axes = place.axes;
  const auto before = [](const Axis& x, const Axis& y) {
    if ((x.stride == 0) != (y.stride == 0)) return x.stride == 0;
    return x.stride > y.stride;
  };
  // Insertion sort: stable, few elements, and without the allocation of stable_sort.
  for (std::size_t i = 1; i < axes.size(); ++i)
    for (std::size_t k = i; k > 0 && before(axes[k], axes[k - 1]); --k) std::swap(axes[k], axes[k - 1]);
  Order order;
  order.reserve(axes.size());
  for (const Axis& axis : axes) order.push_back(axis.index);
  return order;
}

Order ProductOrders::choose(const NodeView& contraction, const Place& a, const Place& b) {
  const plan::Type to = contraction.result_type(0);
  std::vector<Symbol> names;
  for (const plan::Dim& dim : to.dims) names.push_back(dim.index);
  std::vector<Reader> found;
  find_readers(contraction.graph(), contraction.result(0), names, readers_, 0, found);
  const auto [known, is_new] = chosen_.try_emplace(key_of(contraction, a, b, found));
  if (is_new) known->second = best_order(contraction, a, b, found, names);
  return known->second;
}

Order ProductOrders::with_matrices_first(const plan::Graph& graph, ValueId value) const {
  Order own;
  for (const plan::Dim& dim : graph.type(value).dims) own.push_back(dim.index);
  std::vector<Reader> found;
  find_readers(graph, value, own, readers_, 0, found);
  const auto reader =
      std::ranges::find_if(found, [](const Reader& candidate) { return is_product(candidate.node); });
  if (reader == found.end()) return own;
  const plan::Type other = reader->node.input_type(1 - reader->operand), to = reader->node.result_type(0);
  Order order;
  for (const bool first : {true, false})
    for (std::size_t i = 0; i < own.size(); ++i)
      if ((other.has(reader->names[i]) && to.has(reader->names[i])) == first) order.push_back(own[i]);
  return order;
}

namespace {

Order best_order(const NodeView& contraction, const Place& a, const Place& b, std::span<const Reader> found,
                 const std::vector<Symbol>& names) {
  const plan::Type to = contraction.result_type(0);
  std::vector<Order> candidates = {names};
  const auto propose = [&](Order order) {
    if (std::ranges::find(candidates, order) == candidates.end()) candidates.push_back(std::move(order));
  };
  for (const bool a_first : {true, false}) {
    Order order;
    append(order, to.dims, [&](Symbol i) { return a.find(i) != nullptr && b.find(i) != nullptr; });
    const std::array<const Place*, 2> operands = {a_first ? &a : &b, a_first ? &b : &a};
    for (const Place* operand : operands)
      for (const Symbol index : order_of(*operand))
        if (to.has(index) && !has(order, index)) order.push_back(index);
    propose(order);
  }
  for (const Reader& reader : found) {
    const bool is_exchange = &reader.node.op() == &ops::local_exchange();
    if (!is_exchange && !is_product(reader.node)) continue;
    Order order;
    for (const std::size_t position : wished_order(reader)) order.push_back(names[position]);
    propose(std::move(order));
  }

  const Order* best = nullptr;
  double best_cost = 0;
  for (const Order& order : candidates) {
    const Place c = place_in_order({}, to, order);
    const auto product = as_matrix_product(a, b, c);
    if (!product) continue;
    double cost = product->estimate();
    for (const Reader& reader : found) cost += reader_cost(reader, c);
    if (best == nullptr || cost < best_cost) best = &order, best_cost = cost;
  }
  return best != nullptr ? *best : names;
}

}  // namespace

}  // namespace weft::program
