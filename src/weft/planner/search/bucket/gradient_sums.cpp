#include "weft/planner/search/bucket/gradient_sums.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::search {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

namespace {

// Exchanges of a single value, and casts.
bool hands_on(const NodeView& node) {
  return node.input_count() == 1 && node.phase() != plan::Phase::forward &&
         (ops::find_communication(node.op()) != nullptr || &node.op() == &ops::cast());
}

bool same_dims(const plan::Type& a, const plan::Type& b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
}

}  // namespace

std::vector<bool> gradient_sums(const plan::Graph& graph) {
  std::vector<bool> late(graph.value_count(), true), is_read(graph.value_count());
  std::vector<bool> found(graph.node_count());
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    bool is_late = node.phase() == plan::Phase::update;
    if (hands_on(node)) {
      const std::size_t result = node.result(0).value;
      is_late = is_read[result] && late[result];
      if (const ops::Communication* const op = ops::find_communication(node.op())) {
        const ops::Exchange exchange = op->exchange(node);
        found[n] =
            is_late && exchange.take == ops::Exchange::Take::combined && exchange.monoid == plan::Monoid::sum;
      }
    }
    for (const ValueId input : node.node().inputs) {
      is_read[input.value] = true;
      if (!is_late) late[input.value] = false;
    }
  }
  return found;
}

// Backwards over the nodes: an optimizer node reads the weight, then the gradient. Nodes before it,
// such as clipping, keep the gradient's indices.
std::vector<std::string> gradient_names(const plan::Graph& graph) {
  std::set<std::string_view> parameters;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const NodeView node = graph.view(NodeId(n)); &node.op() == &ops::parameter())
      parameters.insert(node.word(0));
  std::vector<std::string> renewed(graph.value_count()), names(graph.value_count());
  for (const plan::Output& output : graph.outputs())
    if (const std::string_view name = graph.updated(output); parameters.contains(name))
      renewed[output.value.value] = name;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    if (node.phase() == plan::Phase::forward || node.input_count() == 0) continue;
    const std::string& next = renewed[node.result(0).value];
    const std::string& gradient = names[node.result(0).value];
    if (!next.empty()) {
      const bool chooses = &node.op() == &ops::select();
      if (hands_on(node) || chooses)
        renewed[node.input(chooses ? 1 : 0).value] = next;
      else if (node.phase() == plan::Phase::update && node.input_count() > 1)
        names[node.input(1).value] = next;
    } else if (!gradient.empty() && (hands_on(node) || node.phase() == plan::Phase::update)) {
      for (const ValueId input : node.node().inputs)
        if (same_dims(graph.type(input), node.result_type(0))) names[input.value] = gradient;
    }
  }
  return names;
}

}  // namespace weft::search
