#include "weft/parallel/distribute/without_codecs.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/feedback.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

namespace {

// By node: whether it serves only the error feedback of codecs.
std::vector<bool> only_for_feedback(const plan::Graph& graph, std::span<const Feedback> feedback) {
  std::vector<bool> needed(graph.node_count()), kept(graph.node_count());
  for (const plan::Output& output : graph.outputs()) {
    const bool is_lost =
        std::ranges::find(feedback, graph.updated(output), &Feedback::name) != feedback.end();
    (is_lost ? kept : needed)[graph.value(output.value).producer.value] = true;
  }
  for (std::size_t n = graph.node_count(); n-- > 0;)
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      const std::size_t from = graph.value(input).producer.value;
      if (needed[n]) needed[from] = true;
      if (kept[n]) kept[from] = true;
    }
  for (std::size_t n = 0; n < graph.node_count(); ++n) kept[n] = kept[n] && !needed[n];
  for (const Feedback& one : feedback) kept[one.state.value] = true;
  return kept;
}

// Whether the node only moves its operand or changes its layout.
bool moves_alone(const NodeView& node) {
  const plan::Operator* const op = &node.op();
  const ops::Communication* const sends = ops::find_communication(*op);
  return op->is_view() || op == &ops::cast() || op == &ops::transpose() || op == &ops::slice() ||
         op == &ops::concat() || op == &ops::select() ||
         (sends != nullptr && sends->exchange(node).take != ops::Exchange::Take::combined);
}

// An optimizer's states must not be encoded: compression loses precision and saves nothing.
Status check_states(const plan::Graph& graph) {
  std::vector<NodeId> decoded(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    NodeId from = &node.op() == &ops::decode() ? node.id() : NodeId();
    if (moves_alone(node))
      for (const ValueId input : node.node().inputs)
        if (decoded[input.value].valid()) from = decoded[input.value];
    for (std::size_t k = 0; k < node.result_count(); ++k) decoded[node.result(k).value] = from;
  }
  const auto sources = sources_of(graph);
  for (const plan::Output& output : graph.outputs()) {
    if (!decoded[output.value.value].valid()) continue;
    const auto source = sources.find(graph.updated(output));
    if (source == sources.end() || graph.node(source->second).op != &ops::state()) continue;
    return user_error(
        fmt::format("node {}: {} is kept in encoded form: codecs are only for values sent along an axis",
                    describe(graph, decoded[output.value.value]), graph.text(output.name)));
  }
  return {};
}

// Whether the encoded value is a slice of what every rank along the axis already holds.
bool is_slice_along(const plan::Graph& graph, NodeView node, std::string_view axis) {
  while (&node.op() == &ops::cast() || node.op().is_view())
    node = graph.view(graph.value(node.input(0)).producer);
  return &node.op() == &ops::slice_across() && node.word(0) == axis;
}

}  // namespace

bool has_codecs(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::Operator* op = graph.node(NodeId(n)).op; op == &ops::encode() || op == &ops::decode())
      return true;
  return false;
}

Result<DistributedPlan> without_codecs(const DistributedPlan& plan) {
  WEFT_TRY_STATUS(check_states(plan.graph));
  PlanEdit edit(plan);
  // By value: the encode node whose codes it holds.
  std::vector<NodeId> codes(plan.graph.value_count());
  std::vector<bool> crossed(plan.graph.value_count());  // by value: its codes moved along an axis
  const std::vector<Feedback> feedback = find_feedback(plan.graph);
  const std::vector<bool> left_out = only_for_feedback(plan.graph, feedback);
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    const auto wrong = [&](std::string_view why) {
      return user_error(fmt::format("node {}: {}", describe(plan.graph, node.id()), why));
    };
    if (left_out[n]) continue;
    // The compression error is zero.
    const auto added = std::ranges::find(feedback, node.id(), &Feedback::add);
    for (const ValueId input : node.node().inputs)
      if (!edit.now(input).valid() && (added == feedback.end() || input == added->wanted))
        return wrong("it reads a codec's error, which only the codec may use");
    if (added != feedback.end()) {
      edit.become(node.result(0), edit.now(added->wanted));
      continue;
    }
    if (&node.op() == &ops::encode()) {
      edit.become(node.result(0), edit.now(node.input(0)));
      codes[node.result(0).value] = node.id();
      continue;
    }
    if (&node.op() == &ops::decode()) {
      const NodeId made = codes[node.input(0).value];
      if (!made.valid()) return wrong("nothing was encoded here");
      // Codes are for communication: a value that does not move only loses precision.
      const bool changes_place = plan.time && plan.time->position[n] != plan.time->position[made.value];
      if (!crossed[node.input(0).value] && !changes_place)
        return wrong(fmt::format("it decodes a value that never crossed an axis or a stage boundary, node {}",
                                 describe(plan.graph, made)));
      const NodeView encode = plan.graph.view(made);
      const plan::Type numbers = edit.graph().type(edit.now(node.input(0)));
      bool alike = ops::codec_of(encode) == ops::codec_of(node) && encode.integer(2) == node.integer(2) &&
                   numbers.rank() == node.result_type(0).rank();
      for (std::size_t d = 0; alike && d < numbers.rank(); ++d)
        alike = edit.graph().text(numbers.dims[d].index) == node.text(node.result_type(0).dims[d].index) &&
                numbers.dims[d].size == node.result_type(0).dims[d].size;
      if (!alike) return wrong("its decoder does not match its encoder");
      edit.adopt_context(node.id());
      WEFT_TRY(same, ops::add_cast(edit.graph(), edit.now(node.input(0)), node.result_type(0).dtype));
      edit.become(node.result(0), same);
      continue;
    }
    NodeId read;
    for (const ValueId input : node.node().inputs)
      if (codes[input.value].valid()) read = codes[input.value];
    if (!read.valid()) {
      WEFT_TRY_STATUS(edit.keep(node.id()));
      continue;
    }
    // The code index stands for the first index of the encoded value.
    const NodeView encode = plan.graph.view(read);
    const auto along = [&](std::size_t attribute) {
      const Symbol index = node.symbol(attribute);
      const bool is_codes = node.text(index) == encode.text(encode.result_type(0).dims.back().index);
      return edit.symbol(is_codes ? ops::coded_indices(encode).front() : index);
    };
    edit.adopt_context(node.id());
    const ValueId numbers = edit.now(node.input(0));
    if (&node.op() == &ops::all_gather()) {
      WEFT_TRY(all, ops::add_all_gather(edit.graph(), numbers, node.word(0), along(1)));
      edit.become(node.result(0), all);
    } else if (&node.op() == &ops::all_to_all()) {
      WEFT_TRY(parts, ops::add_all_to_all(edit.graph(), numbers, node.word(0), along(1), along(2)));
      edit.become(node.result(0), parts);
    } else {
      return wrong("it reads encoded values but cannot decode them");
    }
    codes[node.result(0).value] = read;
    const auto& sent = static_cast<const ops::Communication&>(node.op());
    const auto axis = static_cast<std::size_t>(plan.mesh.find(sent.axis(node)));
    const NodeView coded = plan.graph.view(plan.graph.value(encode.input(0)).producer);
    const bool is_sent =
        plan.mesh.axes[axis].ranks > 1 && !is_slice_along(plan.graph, coded, sent.axis(node));
    crossed[node.result(0).value] = crossed[node.input(0).value] || is_sent;
  }
  return edit.finish();
}

}  // namespace weft::distribute
