#include "weft/parallel/distribute/delayed.h"

#include <algorithm>
#include <map>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/periodic_sums.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

namespace {

// The only reader of each value; invalid if there is none or several.
std::vector<NodeId> only_readers(const plan::Graph& graph) {
  std::vector<NodeId> readers(graph.value_count());
  std::vector<bool> several(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      if (readers[input.value].valid()) several[input.value] = true;
      readers[input.value] = NodeId(n);
    }
  for (const plan::Output& output : graph.outputs()) several[output.value.value] = true;
  for (std::size_t v = 0; v < readers.size(); ++v)
    if (several[v]) readers[v] = {};
  return readers;
}

}  // namespace

std::vector<Delayed> find_delayed(const plan::Graph& graph) {
  const std::map<std::string_view, NodeId> sources = sources_of(graph);
  const std::vector<NodeId> readers = only_readers(graph);
  std::vector<Delayed> found;
  std::vector<bool> gradients;  // computed on first use
  for (const plan::Output& output : graph.outputs()) {
    const auto source = sources.find(graph.updated(output));
    if (source == sources.end()) continue;
    const NodeView state = graph.view(source->second);
    if (&state.op() != &ops::state() || state.word(2) != "zeros") continue;
    ValueId made = output.value;
    for (;;) {
      const NodeView stack = graph.view(graph.value(made).producer);
      if (&stack.op() != &ops::addends()) break;
      made = stack.input(0);
    }
    const NodeId reader = readers[state.result(0).value];
    if (made == output.value || !reader.valid()) continue;
    const NodeView reduce = graph.view(reader);
    if (&reduce.op() != &ops::reduce() || reduce.word(0) != "sum" ||
        graph.value(reduce.result(0)).type != graph.value(made).type)
      continue;
    if (gradients.empty()) gradients = gradients_of(graph);
    if (gradients[reduce.result(0).value]) found.push_back({source->first, state.id(), reader, made});
  }
  return found;
}

// In such a plan the reduction precedes the gradient's computation, so nodes are added in several
// rounds.
Result<DistributedPlan> without_delay(const DistributedPlan& plan) {
  const std::vector<Delayed> delayed = find_delayed(plan.graph);
  PlanEdit edit(plan);
  std::vector<ValueId> instead(plan.graph.node_count());  // by reducing node: the value that it should reduce
  std::vector<bool> left_out(plan.graph.node_count());
  for (const Delayed& one : delayed) {
    left_out[one.state.value] = true;
    instead[one.reduce.value] = one.made;
    for (const plan::Output& output : plan.graph.outputs())
      if (plan.graph.updated(output) == one.name)
        for (ValueId stacked = output.value; stacked != one.made;) {
          const NodeId stack = plan.graph.value(stacked).producer;
          left_out[stack.value] = true;
          stacked = plan.graph.node(stack).inputs[0];
        }
  }
  std::vector<NodeId> waiting;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
    if (!left_out[n]) waiting.push_back(NodeId(n));
  while (!waiting.empty()) {
    std::vector<NodeId> later;
    for (const NodeId node : waiting) {
      const ValueId made = instead[node.value];
      const bool is_ready = made.valid()
                                ? edit.now(made).valid()
                                : std::ranges::all_of(plan.graph.node(node).inputs,
                                                      [&](ValueId input) { return edit.now(input).valid(); });
      if (!is_ready)
        later.push_back(node);
      else if (made.valid())
        edit.become(plan.graph.result(node), edit.now(made));
      else
        WEFT_TRY_STATUS(edit.keep(node));
    }
    if (later.size() == waiting.size())
      return user_error("the delayed value depends on itself: without the delay the plan has a cycle");
    waiting = std::move(later);
  }
  return edit.finish();
}

}  // namespace weft::distribute
