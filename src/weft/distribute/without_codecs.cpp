#include "weft/distribute/without_codecs.h"

#include <fmt/format.h>

#include "weft/distribute/edit_plan.h"
#include "weft/ops/build.h"
#include "weft/ops/codec.h"
#include "weft/ops/communication.h"
#include "weft/plan/verify.h"

namespace weft::distribute {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

bool has_codecs(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::Operator* op = graph.node(NodeId(n)).op; op == &ops::encode() || op == &ops::decode())
      return true;
  return false;
}

Result<DistributedPlan> without_codecs(const DistributedPlan& plan) {
  PlanEdit edit(plan);
  // By value: the encode whose codes it holds.
  std::vector<NodeId> codes(plan.graph.value_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    const auto wrong = [&](std::string_view why) {
      return user_error(fmt::format("node {}: {}", describe(plan.graph, node.id()), why));
    };
    if (&node.op() == &ops::encode()) {
      edit.become(node.result(0), edit.now(node.input(0)));
      codes[node.result(0).value] = node.id();
      continue;
    }
    if (&node.op() == &ops::decode()) {
      const NodeId made = codes[node.input(0).value];
      if (!made.valid()) return wrong("nothing was encoded here");
      const NodeView encode = plan.graph.view(made);
      const plan::Type numbers = edit.graph().type(edit.now(node.input(0)));
      bool alike = encode.word(0) == node.word(0) && encode.integer(1) == node.integer(1) &&
                   numbers.rank() == node.result_type(0).rank();
      for (std::size_t d = 0; alike && d < numbers.rank(); ++d)
        alike = edit.graph().text(numbers.dims[d].index) == node.text(node.result_type(0).dims[d].index) &&
                numbers.dims[d].size == node.result_type(0).dims[d].size;
      if (!alike) return wrong("it is not decoded as it was encoded");
      edit.stand_at(node.id());
      WEFT_TRY(same, ops::add_cast(edit.graph(), edit.now(node.input(0)), node.result_type(0).dtype));
      edit.become(node.result(0), same);
      continue;
    }
    const bool moves = ops::find_communication(node.op()) != nullptr;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const NodeId made = codes[node.input(i).value];
      if (!made.valid()) continue;
      if (!moves || node.result_count() != node.input_count()) return wrong("it reads codes, which mean nothing to it");
      codes[node.result(i).value] = made;
    }
    WEFT_TRY_STATUS(edit.keep(node.id()));
  }
  return edit.finish();
}

}  // namespace weft::distribute
