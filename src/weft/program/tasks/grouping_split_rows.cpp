// Tables whose row index is stored as two axes:
//
//   sent[b, n, d]    is a scatter target, read as [b, x, c, d] by products with one matrix per x
//                    in memory [x, b, c, d]: b and c are one side of these
//   done[b, x, c, d] is the result of such products, and rows of [b, n, d] are gathered from it
//
// Row n is at (n / c, n mod c), with two strides instead of one, so no copy between the layouts is
// needed.
#include <algorithm>

#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouper.h"

namespace weft::program {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

namespace {

// An index with the same name would be confused with the part.
bool has_any(const plan::Type& type, std::span<const Symbol> parts) {
  return std::ranges::any_of(parts, [&](Symbol part) { return type.has(part); });
}

}  // namespace

bool Grouper::add_scatter_split(const NodeView& node) {
  const ValueId table = node.result(0);
  const auto readers = readers_.of(table);
  if (!accelerated_ || readers.empty() || is_graph_output(graph_, table)) return false;
  const NodeView first = graph_.view(readers.front());
  const auto splits = [&](NodeId id) {
    const NodeView reader = graph_.view(id);
    if (&reader.op() != &ops::split() || reader.symbol(0) != node.symbol(0)) return false;
    return std::ranges::equal(reader.type(1).dims, first.type(1).dims, {}, &plan::Dim::size,
                              &plan::Dim::size);
  };
  if (!std::ranges::all_of(readers, splits)) return false;
  Order parts;
  for (const plan::Dim& dim : first.type(1).dims) parts.push_back(dim.index);
  if (has_any(node.input_type(0), parts) || has_any(node.input_type(1), parts)) return false;
  const plan::Type seen = first.result_type(0);
  const Order order = orders_.with_matrices_first(graph_, first.result(0));
  if (std::ranges::equal(order, seen.dims, {}, {}, &plan::Dim::index)) return false;
  Group group{.kind = GroupKind::call, .nodes = {node.id()}};
  for (const ValueId input : node.node().inputs) group.operands.push_back(plain(input));
  const Place place = place_in_order(BufferId(table.value), seen, order);
  group.results = {place};
  const auto id = static_cast<std::uint32_t>(made_.groups.size());
  finish(std::move(group), node);
  for (const NodeId reader : readers) {
    const NodeView split = graph_.view(reader);
    Place renamed = place;
    for (std::size_t i = 0; i < renamed.axes.size(); ++i)
      renamed.axes[i].index = split.result_type(0).dims[i].index;
    set(split.result(0), renamed, id);
  }
  return true;
}

bool Grouper::is_gathered_split(const NodeView& merge) const {
  const ValueId table = merge.result(0);
  if (!accelerated_ || &merge.op() != &ops::merge() || readers_.of(table).empty() ||
      is_graph_output(graph_, table))
    return false;
  return std::ranges::all_of(readers_.of(table), [&](NodeId id) {
    const NodeView reader = graph_.view(id);
    return &reader.op() == &ops::gather() && reader.input(1) == table && reader.input(0) != table &&
           reader.symbol(0) == merge.symbol(1) && !has_any(reader.input_type(0), merge.indices(0)) &&
           !has_any(merge.input_type(0), {{merge.symbol(1)}});
  });
}

}  // namespace weft::program
