#include "weft/program/tasks/row_end.h"

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/masked_regions.h"

namespace weft::program {
namespace {

using plan::NodeView;
using plan::ValueId;

// Where elements of a row contribute nothing to the node's result for the whole row.
std::optional<Region> adds_nothing(const NodeView& node, const MaskedRegions& masked) {
  if (&node.op() == &ops::softmax()) return masked.zero[node.result(0).value];
  if (&node.op() == &ops::contract() || (&node.op() == &ops::reduce() && node.word(0) == "sum"))
    for (const ValueId operand : node.node().inputs)
      if (masked.zero[operand.value]) return masked.zero[operand.value];
  return std::nullopt;
}

}  // namespace

std::optional<RowEnd> find_row_end(const Group& group, std::span<const plan::Dim> outer,
                                   std::span<const plan::Dim> row, const RowCodeInputs& inputs) {
  if (row.size() != 1) return std::nullopt;
  const Symbol along = row[0].index;
  std::optional<Region> region;
  bool first = true;
  const auto leave_out = [&](const std::optional<Region>& more) {
    region = first ? more : both(region, more);
    first = false;
    return region.has_value();
  };
  for (const plan::NodeId id : group.nodes) {
    const NodeView node = inputs.graph.view(id);
    if (is_accumulated(group, node)) return std::nullopt;
    const bool is_of_row = node.result_type(0).has(along);
    const bool is_single = !is_of_row && !node.input_type(0).has(along);
    const bool is_by_element = ops::is_pointwise(node.op()) || &node.op() == &ops::cast() ||
                               (is_of_row && &node.op() == &ops::contract());
    if (!is_by_element && !is_single && !leave_out(adds_nothing(node, inputs.masked))) return std::nullopt;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId result = node.result(k);
      if (!node.result_type(k).has(along) || !inputs.is_stored(result)) continue;
      const std::optional<Region>& zero = inputs.masked.zero[result.value];
      if (!leave_out(zero ? zero : inputs.masked.unread[result.value])) return std::nullopt;
    }
  }
  if (!region || region->later != along) return std::nullopt;
  for (std::size_t i = 0; i < outer.size(); ++i)
    if (outer[i].index == region->earlier) return RowEnd{i, region->offset};
  return std::nullopt;
}

}  // namespace weft::program
