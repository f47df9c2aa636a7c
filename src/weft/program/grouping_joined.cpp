#include <algorithm>

#include "weft/ops/operators.h"
#include "weft/program/grouper.h"

namespace weft::program {

using plan::NodeView;

// What is laid end to end along its slowest index needs no copy where nobody else reads a part: whoever makes it
// writes it where it belongs. Other parts are copied there.
bool Grouper::add_joined(const NodeView& node) {
  if (!turns_.empty()) return false;
  const Symbol along = node.symbol(0);
  const plan::Type type = node.result_type(0);
  std::vector<Place> parts;
  for (const plan::ValueId input : node.node().inputs) parts.push_back(stored(input));
  // As the first part lies: parts of a chain that was cut lie alike.
  const Order order = order_of(parts[0]);
  for (const Symbol index : order) {
    if (index == along) break;
    if (type.size_of(index) > 1) return false;
  }
  std::vector<bool> moves;
  for (std::size_t i = 0; i < parts.size(); ++i) moves.push_back(is_part(node, i, parts[i], order));
  if (std::ranges::find(moves, true) == moves.end()) return false;
  const Place whole = place_in_order(BufferId(node.result(0).value), type, order);
  const std::int64_t step = type.elements() / type.size_of(along);
  std::int64_t offset = 0;
  std::uint32_t last = kNoGroup;
  mark_read(kNoGroup, node.node().inputs);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint32_t group = made_.group[node.input(i).value];
    if (moves[i]) {
      moves_[parts[i].buffer.value] = {whole.buffer, offset};
    } else {
      Place to = place_in_order(whole.buffer, node.input_type(i), order);
      to.offset = offset;
      add_copy(node.input(i), parts[i], to);
      group = static_cast<std::uint32_t>(made_.groups.size() - 1);
    }
    if (last == kNoGroup || made_.groups[group].depth > made_.groups[last].depth) last = group;
    offset += step * node.input_type(i).size_of(along);
  }
  joined_.insert(whole.buffer.value);
  set(node.result(0), whole, last);
  return true;
}

// A loop over rows may take in what reads its results, and would then run before the other parts are there.
bool Grouper::is_part(const NodeView& node, std::size_t operand, const Place& place, const Order& order) const {
  const plan::ValueId value = node.input(operand);
  const std::uint32_t group = made_.group[value.value];
  return group != kNoGroup && made_.groups[group].kind != GroupKind::rows &&
         made_.groups[group].kind != GroupKind::copy && place.buffer == BufferId(value.value) &&
         is_movable(value, place) && lies_in(place, order);
}

}  // namespace weft::program
