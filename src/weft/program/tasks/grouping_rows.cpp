#include <algorithm>
#include <optional>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/grouper.h"

namespace weft::program {

using plan::Dim;
using plan::NodeView;
using plan::ValueId;

namespace {

bool is_norm(const plan::Operator& op) { return &op == &ops::layer_norm() || &op == &ops::rms_norm(); }

bool contains(std::span<const Dim> dims, Symbol index) {
  return std::ranges::any_of(dims, [&](const Dim& dim) { return dim.index == index; });
}

// Whether the contraction has rows, columns and a sum, and thus is a matrix product. Without one of
// them it is memory-bound, and a row loop over the larger operand is as good if that has all
// indices. A batch with one row still counts as a product, because no operand defines an order for
// a row loop.
bool has_all_parts(const NodeView& node) {
  const plan::Type a = node.input_type(0), b = node.input_type(1), c = node.result_type(0);
  bool rows = false, columns = false, sums = false;
  std::int64_t places = 1;
  for (const Dim& dim : a.dims) {
    const bool is_row = !b.has(dim.index) && c.has(dim.index);
    rows |= is_row;
    if (is_row) places *= dim.size;
    sums |= dim.size > 1 && b.has(dim.index) && !c.has(dim.index);
  }
  for (const Dim& dim : b.dims) {
    const bool is_column = !a.has(dim.index) && c.has(dim.index);
    columns |= is_column;
    if (is_column) places *= dim.size;
  }
  return rows && columns && sums && places > 1;
}

bool is_reduction(const NodeView& node) {
  return &node.op() == &ops::reduce() || &node.op() == &ops::contract();
}

}  // namespace

bool Grouper::runs_by_rows(const NodeView& node) const {
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
  return &node.op() == &ops::softmax() || is_norm(node.op());
}

std::vector<Dim> Grouper::domain_of(const NodeView& node) const {
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
    all = std::move(ordered);
    break;
  }
  // The indices that a window function runs over form its row, wherever they are in memory.
  if (&node.op() == &ops::softmax() || is_norm(node.op())) {
    const std::span<const Symbol> over = node.indices(0);
    std::stable_partition(all.begin(), all.end(),
                          [&](const Dim& dim) { return std::ranges::find(over, dim.index) == over.end(); });
  }
  return all;
}

std::optional<Grouper::Row> Grouper::row_wish(const NodeView& node, std::span<const Dim> domain) {
  if (&node.op() == &ops::softmax() || is_norm(node.op())) return Row{node.indices(0).size(), true};
  if (&node.op() != &ops::reduce() && &node.op() != &ops::contract()) return std::nullopt;
  const plan::Type to = node.result_type(0);
  if (to.rank() == domain.size()) return std::nullopt;
  const bool keeps_last = to.has(domain.back().index);
  std::size_t size = 0;
  while (size < domain.size() && to.has(domain[domain.size() - 1 - size].index) == keeps_last) ++size;
  return Row{size, !keeps_last};
}

bool Grouper::fits(const Group& group, const NodeView& node, std::span<const Dim> domain, Row& row) {
  if (group.kind != GroupKind::rows) return false;
  row = {group.row, group.row_fixed};
  const std::size_t outer = group.domain.size() - group.row;
  if (domain.size() == outer && group.row_fixed && group.row > 0 && ops::is_pointwise(node.op())) {
    // Work on one number per row.
    return std::ranges::equal(domain, std::span(group.domain).first(outer));
  }
  if (!std::ranges::equal(domain, group.domain)) return false;
  const std::optional<Row> wish = row_wish(node, domain);
  if (!wish) return true;
  if (wish->fixed && row.fixed) {
    // A reduction of the row and further indices sums the rest over rows.
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

bool Grouper::has_even_operands(const NodeView& node, std::span<const Dim> domain, std::size_t row) const {
  return std::ranges::all_of(node.node().inputs, [&](ValueId input) {
    return made_.recomputed[input.value] || step_along(made_.places[input.value], domain.last(row));
  });
}

void Grouper::add_rows(const NodeView& node) {
  // A recomputed operand that does not fit in lanes is stored by its reader.
  const std::vector<Dim> domain = domain_of(node);
  std::uint32_t joined = kNoGroup;
  Row row{domain.size(), false};
  // The latest group first: the others are more likely to be finished before it.
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
    // What a shorter row does not sum is summed over rows.
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

bool Grouper::may_join(std::uint32_t candidate, const NodeView& node) const {
  const Group& group = made_.groups[candidate];
  if (!turns_.empty() && !group.nodes.empty() && turns_[group.nodes[0].value] != turns_[node.id().value])
    return false;
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
      // A view that reads the group's rows in another order needs all of them.
      if (value != input) return false;
    } else if (group.is_read && depth_after({&input, 1}) > group.depth) {
      return false;
    }
  }
  return true;
}

ValueId Grouper::owner(ValueId value) const {
  const std::uint32_t buffer = made_.places[value.value].buffer.value;
  return buffer < graph_.value_count() ? ValueId(buffer) : value;
}

}  // namespace weft::program
