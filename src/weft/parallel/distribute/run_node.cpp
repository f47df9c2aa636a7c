#include "weft/parallel/distribute/run_node.h"

#include <algorithm>

#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/sliding.h"
#include "weft/plan/spmd/carries.h"
#include "weft/plan/spmd/ring.h"

namespace weft::distribute {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::Loop;
using plan::Monoid;
using plan::NodeView;
using plan::ValueId;

AxisLayout sliced_at(const plan::Type& type, int dim) {
  return dim < 0 ? AxisLayout::replicated()
                 : AxisLayout::sliced(type.dims[static_cast<std::size_t>(dim)].index);
}

// The parallel loop over that dim of an operand or result.
const Loop* loop_at(const plan::Signature& signature, std::vector<std::int8_t> Loop::*side, std::size_t which,
                    int dim) {
  if (dim < 0) return nullptr;
  for (const Loop& loop : signature.loops)
    if (loop.role == plan::Role::parallel && (loop.*side)[which] == dim && has_operand(loop)) return &loop;
  return nullptr;
}

}  // namespace

RunChooser::RunChooser(const plan::Graph& graph, const Signatures& signatures, const LoopChoices& choices,
                       const SourceLayouts& sources, const plan::Mesh& mesh, const StageUses& uses,
                       const Holdings& holdings)
    : graph_(graph),
      signatures_(signatures),
      choices_(choices),
      sources_(sources),
      mesh_(mesh),
      uses_(uses),
      holdings_(holdings),
      readers_(graph.value_count()),
      wanted_(graph.value_count()),
      is_gradient_(graph.value_count()) {
  count_readers();
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeId parameter = sources.updated[n];
    if (!parameter.valid()) continue;
    const plan::TypeId held = graph.value(graph.result(parameter)).type;
    has_masters_ |= graph.value(graph.result(plan::NodeId(n))).type != held;
    for (const ValueId input : graph.node(plan::NodeId(n)).inputs) {
      const plan::Value& operand = graph.value(input);
      if (!std::ranges::equal(graph.type(input).dims, graph.type(graph.result(parameter)).dims) ||
          sources.updated[operand.producer.value].valid() || ops::is_source(*graph.node(operand.producer).op))
        continue;
      is_gradient_[input.value] = true;
      want_back(input, sources.layouts[n]);
    }
  }
}

void RunChooser::count_readers() {
  std::vector<std::uint32_t> last(graph_.value_count(), plan::NodeId::kNone);
  read_before_.resize(graph_.value_count());
  for (std::size_t n = 0; n < graph_.node_count(); ++n)
    for (const ValueId input : graph_.node(plan::NodeId(n)).inputs) {
      if (graph_.phase(plan::NodeId(n)) != plan::Phase::update) read_before_[input.value] = true;
      if (last[input.value] == n) continue;
      last[input.value] = static_cast<std::uint32_t>(n);
      ++readers_[input.value];
    }
  for (const plan::Output& output : graph_.outputs()) ++readers_[output.value.value];
}

// Propagates a wanted layout backwards through elementwise nodes whose result has no other reader.
// For example, a gradient is cast after it was sliced.
void RunChooser::want_back(ValueId value, Layout layout) {
  for (;;) {
    wanted_[value.value] = layout;
    const NodeView node = graph_.view(graph_.value(value).producer);
    if (node.input_count() != 1 || node.result_count() != 1 || readers_[value.value] != 1) return;
    const plan::Signature& signature = signatures_.of(node.id());
    if (!is_elementwise(node, signature)) return;
    for (AxisLayout& axis : layout.axes)
      if (axis.is_sliced()) {
        const Loop* loop = loop_at(signature, &Loop::results, 0, node.result_type(0).position(axis.index));
        if (loop == nullptr) return;
        axis = sliced_at(node.input_type(0), loop->operands[0]);
      }
    value = node.input(0);
  }
}

NodeRun RunChooser::run(const NodeView& node) const {
  const plan::Signature& signature = signatures_.of(node.id());
  std::vector<Way> ways;
  for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) ways.push_back(way_on(node, signature, axis));
  // Only one axis can run ring attention; on the others keys and values are gathered.
  const auto ring = std::ranges::find_if(ways, &Way::around);
  for (auto way = ring; way != ways.end(); ++way) way->around = way == ring;
  if (node.op().is_view())
    for (std::size_t axis = mesh_.axes.size(); axis-- > 0;) {
      if (ways[axis].loop == nullptr) continue;
      std::vector<bool> cut;
      for (const Way& way : ways) cut.push_back(way.loop == ways[axis].loop);
      if (!blocks_agree(node, *ways[axis].loop, mesh_, cut)) ways[axis] = {};
    }

  NodeRun run;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    Layout& operand = run.operands.emplace_back();
    for (std::size_t axis = 0; axis < ways.size(); ++axis) {
      const AxisLayout& held = holdings_.given(node.input(i)).axes[axis];
      const Way& way = ways[axis];
      operand.axes.push_back(way.around            ? spmd::ring_operands(node)[i]
                             : way.loop != nullptr ? needed_of(node, signature, *way.loop, i, axis)
                             : way.addends != Monoid::none && held.is_partial() ? held
                                                                                : AxisLayout::replicated());
    }
  }
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    Layout& result = run.results.emplace_back();
    for (const Way& way : ways)
      result.axes.push_back(way.around                    ? spmd::ring_results(node)[k]
                            : way.addends != Monoid::none ? AxisLayout::partial(way.addends)
                            : way.loop == nullptr         ? AxisLayout::replicated()
                            : way.loop->role == plan::Role::reduced || way.loop->results[k] < 0
                                ? AxisLayout::partial(way.loop->monoid)
                                : sliced_at(node.result_type(k), way.loop->results[k]));
  }
  return run;
}

AxisLayout RunChooser::needed_of(const NodeView& node, const plan::Signature& signature, const Loop& loop,
                                 std::size_t operand, std::size_t axis) const {
  const auto number = static_cast<std::size_t>(&loop - signature.loops.data());
  const auto needed = ops::operand_layout(node, signature, number, operand, mesh_.axes[axis].ranks);
  WEFT_CHECK(needed.has_value(), "sliced a loop whose windows exceed the neighbouring blocks");
  return *needed;
}

RunChooser::Way RunChooser::way_on(const NodeView& node, const plan::Signature& signature,
                                   std::size_t axis) const {
  if (sources_.updated[node.id().value].valid()) return {update_loop(node, signature, axis)};
  if (const Monoid monoid = carried(node, axis); monoid != Monoid::none) return {nullptr, monoid};
  const LoopChoice choice = choices_.at(node.id(), axis);
  if (choice >= 0) {
    const Loop& loop = signature.loops[static_cast<std::size_t>(choice)];
    return {&loop, Monoid::none, may_go_around(node, loop, axis)};
  }
  return {choice == kUnlisted && is_elementwise(node, signature) ? followed(node, signature, axis) : nullptr};
}

bool RunChooser::may_go_around(const NodeView& node, const Loop& loop, std::size_t axis) const {
  if (!uses_.on(node.id(), axis).ring || !spmd::supports_ring_attention(node) ||
      loop.index != node.symbol(ops::kAttentionAlong))
    return false;
  const AxisLayout block = AxisLayout::sliced(node.symbol(ops::kAttentionOver));
  return holdings_.given(node.input(ops::kAttentionK)).axes[axis] == block &&
         holdings_.given(node.input(ops::kAttentionV)).axes[axis] == block;
}

const Loop* RunChooser::update_loop(const NodeView& node, const plan::Signature& signature,
                                    std::size_t axis) const {
  const AxisLayout& layout = sources_.layouts[node.id().value].axes[axis];
  if (!layout.is_sliced()) return nullptr;
  return loop_at(signature, &Loop::results, 0, node.result_type(0).position(layout.index));
}

Monoid RunChooser::carried(const NodeView& node, std::size_t axis) const {
  Monoid monoid = Monoid::none;
  std::vector<bool> addends;
  std::int64_t bytes = 0, count = 0;
  for (const ValueId input : node.node().inputs) {
    const AxisLayout& held = holdings_.given(input).axes[axis];
    addends.push_back(held.is_partial());
    if (!held.is_partial()) continue;
    if ((monoid != Monoid::none && held.monoid != monoid) || readers_[input.value] != 1) return Monoid::none;
    monoid = held.monoid;
    bytes += graph_.type(input).bytes();
    ++count;
  }
  if (monoid == Monoid::none) return monoid;
  for (std::size_t i = 0; i < addends.size(); ++i)
    if (!addends[i] && !holdings_.given(node.input(i)).axes[axis].is_replicated()) return Monoid::none;
  std::int64_t made = 0;
  for (std::size_t k = 0; k < node.result_count(); ++k) made += node.result_type(k).bytes();
  const LoopChoice choice = choices_.at(node.id(), axis);
  const bool pays = is_widened_gradient(node) ? true
                    : choice == kUnlisted     ? made <= bytes
                    : choice == kWhole        ? false
                    : count > 1               ? made <= bytes
                                              : made < bytes && node.op().work(node).multiply_adds == 0;
  return pays && spmd::carries(node, monoid, addends) ? monoid : Monoid::none;
}

// With master weights, gradients that the backward pass widens are summed in the wider type.
// Others, for a parameter that the model itself casts before use, are moved in the narrower type.
bool RunChooser::is_widened_gradient(const NodeView& node) const {
  return has_masters_ && &node.op() == &ops::cast() && node.phase() == plan::Phase::backward &&
         node.result_type(0).bytes() > node.input_type(0).bytes() && !read_before_[node.result(0).value];
}

const Loop* RunChooser::followed(const NodeView& node, const plan::Signature& signature,
                                 std::size_t axis) const {
  const Loop* best = nullptr;
  std::int64_t largest = -1;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const AxisLayout& held = holdings_.given(node.input(i)).axes[axis];
    const plan::Type type = node.input_type(i);
    if (!held.is_sliced() || type.bytes() <= largest) continue;
    const Loop* loop = loop_at(signature, &Loop::operands, i, type.position(held.index));
    if (loop == nullptr) continue;
    best = loop;
    largest = type.bytes();
  }
  if (best != nullptr || node.result_count() != 1) return best;
  const Layout& wanted = wanted_[node.result(0).value];
  if (wanted.axes.empty() || !wanted.axes[axis].is_sliced()) return nullptr;
  return loop_at(signature, &Loop::results, 0, node.result_type(0).position(wanted.axes[axis].index));
}

}  // namespace weft::distribute
