// Contractions of two values as matrix products: the layouts of operands, their copies, and
// results.
#include <algorithm>
#include <functional>
#include <optional>

#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouper.h"
#include "weft/program/tasks/items.h"
#include "weft/program/tasks/matrix_product.h"

namespace weft::program {

using plan::Dim;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

Place with_even_rows(Place place) {
  std::int64_t row = 1;
  for (const Axis& axis : place.axes)
    if (axis.stride == 1 && axis.size > 1) row = axis.size;
  for (Axis& axis : place.axes)
    if (axis.stride >= row && row > 1) axis.stride = axis.stride / row * ((row + 7) / 8 * 8);
  return place;
}

bool Grouper::is_product(const NodeView& node) const {
  return &node.op() == &ops::contract() && node.input_count() == 2 && is_float(node.result_type(0).dtype);
}

void Grouper::add_product(const NodeView& node) {
  Place a = stored(node.input(0)), b = stored(node.input(1));
  const Place plain_c = plain_place(BufferId(node.result(0).value), node.result_type(0));
  Place c = plain_c;
  const auto find_c = [&] {
    c = place_in_order(plain_c.buffer, node.result_type(0), orders_.choose(node, a, b));
    if (as_matrix_product(a, b, c)) return true;
    c = plain_c;
    return as_matrix_product(a, b, c).has_value();
  };
  if (!find_c()) {
    a = plain(node.input(0));
    b = plain(node.input(1));
    if (!find_c()) {
      // No order has a side of stride 1 where it is needed: move the summed indices to the end.
      a = copied_once(node.input(0), with_sums_last(node, 0));
      b = copied_once(node.input(1), with_sums_last(node, 1));
      if (!as_matrix_product(a, b, c)) return add_call(node);
    }
  }
  if (accelerated_) join_sums(node, a, b, c);
  if (is_logits(node, c))
    if (const Place even = with_even_rows(c); as_matrix_product(a, b, even)) c = even;
  Group group{.kind = GroupKind::product, .nodes = {node.id()}};
  group.operands = {a, b};
  std::vector<ValueId> scales;
  c.buffer = BufferId(take_scales(node, group, scales).value);
  group.results = {c};
  const std::vector<NodeId> nodes = group.nodes;
  finish(std::move(group), node, scales);
  for (const NodeId scaling : nodes)
    set(graph_.view(scaling).result(0), c, made_.group[node.result(0).value]);
}

namespace {

// The indices of a place, slowest first.
Order slowest_first(const Place& place) {
  std::vector<Axis> axes(place.axes.begin(), place.axes.end());
  std::ranges::stable_sort(axes, std::greater{}, &Axis::stride);
  Order order;
  for (const Axis& axis : axes) order.push_back(axis.index);
  return order;
}

// The number of products that accumulate in one place; empty if it is not a product.
std::optional<std::int64_t> separate_sums(const Place& a, const Place& b, const Place& c) {
  const auto product = as_matrix_product(a, b, c);
  if (!product) return {};
  std::int64_t terms = 1;
  for (const ProductLoop& loop : product->summed) terms *= loop.size;
  return terms;
}

}  // namespace

void Grouper::join_sums(const NodeView& node, Place& a, Place& b, const Place& c) {
  if (separate_sums(a, b, c).value_or(1) <= 1) return;
  // Orders an operand's indices: first those in all three, in c's order; then the summed ones, in
  // the other operand's order, and the remaining ones of c. Of these two groups, the one with the
  // operand's fastest index comes last, so that whole rows are copied.
  const auto with_joined = [&](std::size_t operand, const Place& from, const Place& other) {
    const plan::Type type = node.input_type(operand);
    Order order, own, summed;
    for (const Symbol index : slowest_first(c))
      if (type.has(index)) (other.find(index) != nullptr ? order : own).push_back(index);
    for (const Symbol index : slowest_first(other))
      if (type.has(index) && !node.result_type(0).has(index)) summed.push_back(index);
    for (const Dim& dim : type.dims)  // summed in this operand only
      if (!node.result_type(0).has(dim.index) && std::ranges::find(summed, dim.index) == summed.end())
        summed.push_back(dim.index);
    const bool keeps_rows = !own.empty() && slowest_first(from).back() == own.back();
    for (const Order* const part : {keeps_rows ? &summed : &own, keeps_rows ? &own : &summed})
      order.insert(order.end(), part->begin(), part->end());
    return place_in_order({}, type, order);
  };
  const Place joined_a = with_joined(0, a, b), joined_b = with_joined(1, b, a),
              both_b = with_joined(1, b, joined_a);
  const auto smaller = node.input_type(0).elements() <= node.input_type(1).elements() ? 0 : 1;
  for (const int which : {smaller, 1 - smaller})
    if (separate_sums(which == 0 ? joined_a : a, which == 1 ? joined_b : b, c) == 1) {
      if (which == 0)
        a = copied_once(node.input(0), joined_a);
      else
        b = copied_once(node.input(1), joined_b);
      return;
    }
  if (separate_sums(joined_a, both_b, c) != 1) return;
  a = copied_once(node.input(0), joined_a);
  b = copied_once(node.input(1), both_b);
}

Place Grouper::with_sums_last(const NodeView& node, std::size_t operand) const {
  const plan::Type type = node.input_type(operand), to = node.result_type(0);
  Order order;
  for (const bool summed : {false, true})
    for (const Dim& dim : type.dims)
      if (to.has(dim.index) != summed) order.push_back(dim.index);
  return place_in_order({}, type, order);
}

}  // namespace weft::program
