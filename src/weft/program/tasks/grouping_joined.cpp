#include <algorithm>

#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouper.h"

namespace weft::program {

using plan::NodeView;

// A concat along the slowest index needs no copy: each producer writes its part in place, and
// readers read it there. Parts that their producer cannot place, or that would not begin on a cache
// line, are copied.
bool Grouper::add_joined(const NodeView& node) {
  if (!turns_.empty()) return false;
  const Symbol along = node.symbol(0);
  const plan::Type type = node.result_type(0);
  std::vector<Place> parts;
  for (const plan::ValueId input : node.node().inputs) parts.push_back(stored(input));
  // The order of the first part: parts of a chain that was split have the same layout.
  const Order order = order_of(parts[0]);
  for (const Symbol index : order) {
    if (index == along) break;
    if (type.size_of(index) > 1) return false;
  }
  const std::int64_t step = type.elements() / type.size_of(along);
  const bool is_cut_again = is_sliced(node.result(0));
  std::vector<std::int64_t> offsets;
  std::vector<bool> moves;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    offsets.push_back(next);
    constexpr std::int64_t kCacheLine = 64;
    const bool is_even = next * plan::size_in_bytes(type.dtype) % kCacheLine == 0;
    moves.push_back(is_even && is_part(node, i, parts[i], order, is_cut_again));
    next += step * node.input_type(i).size_of(along);
  }
  if (std::ranges::find(moves, true) == moves.end()) return false;
  const Place whole = place_in_order(BufferId(node.result(0).value), type, order);
  std::uint32_t last = kNoGroup;
  mark_read(kNoGroup, node.node().inputs);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint32_t group = made_.group[node.input(i).value];
    if (moves[i]) {
      moves_[parts[i].buffer.value] = {whole.buffer, offsets[i]};
    } else {
      Place to = place_in_order(whole.buffer, node.input_type(i), order);
      to.offset = offsets[i];
      add_copy(node.input(i), parts[i], to);
      group = static_cast<std::uint32_t>(made_.groups.size() - 1);
    }
    if (last == kNoGroup || made_.groups[group].depth > made_.groups[last].depth) last = group;
  }
  joined_.insert(whole.buffer.value);
  set(node.result(0), whole, last);
  return true;
}

// A row loop may include readers of its results. A reader of a slice of the whole might then run
// before the other parts are ready.
bool Grouper::is_part(const NodeView& node, std::size_t operand, const Place& place, const Order& order,
                      bool is_cut_again) const {
  const plan::ValueId value = node.input(operand);
  const std::uint32_t group = made_.group[value.value];
  if (group == kNoGroup || made_.groups[group].kind == GroupKind::copy ||
      (made_.groups[group].kind == GroupKind::rows && is_cut_again))
    return false;
  for (const plan::Output& output : graph_.outputs())
    if (output.value == value) return false;
  return place.buffer == BufferId(value.value) && place.offset == 0 && !moves_.contains(place.buffer.value) &&
         !joined_.contains(place.buffer.value) && std::ranges::count(node.node().inputs, value) == 1 &&
         !ops::is_source(graph_.view(graph_.value(value).producer).op()) && is_in_order(place, order);
}

bool Grouper::is_sliced(plan::ValueId value) const {
  return std::ranges::any_of(readers_.of(value), [&](plan::NodeId id) {
    const NodeView reader = graph_.view(id);
    return &reader.op() == &ops::slice() || (is_placed_view(reader.op()) && is_sliced(reader.result(0)));
  });
}

}  // namespace weft::program
