#include "weft/runtime/run/fold_weights.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouping.h"

namespace weft::run {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Finds nodes that depend only on weights and constants, with at least one weight.
class WeightsOnly {
 public:
  explicit WeightsOnly(const Graph& graph) : of_(graph.value_count(), From::elsewhere) {
    const std::vector<ValueId> next = program::next_values(graph);
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      const From from = origin(node, next);
      for (std::size_t k = 0; k < node.result_count(); ++k) of_[node.result(k).value] = from;
      if (from == From::weights && ops::is_source(node.op())) bytes_ += node.result_type(0).bytes();
    }
  }

  // Worth computing once: work on weights whose results are no larger than the weights.
  bool is_kept(const NodeView& node) const {
    if (node.result_count() == 0 || ops::is_source(node.op()) || program::is_placed_view(node.op()))
      return false;
    std::int64_t made = 0;
    for (std::size_t k = 0; k < node.result_count(); ++k) made += node.result_type(k).bytes();
    return of_[node.result(0).value] == From::weights && made <= bytes_;
  }

 private:
  enum class From : std::uint8_t { numbers, weights, elsewhere };

  From origin(const NodeView& node, const std::vector<ValueId>& next) const {
    if (&node.op() == &ops::parameter() || &node.op() == &ops::state()) {
      const ValueId after = next[node.result(0).value];
      return after.valid() && after != node.result(0) ? From::elsewhere : From::weights;
    }
    if (ops::is_source(node.op())) return From::elsewhere;
    From from = From::numbers;
    for (const ValueId input : node.node().inputs) from = std::max(from, of_[input.value]);
    return from;
  }

  std::vector<From> of_;  // by value
  std::int64_t bytes_ = 0;
};

// Copies selected nodes of a plan to another plan.
class Copier {
 public:
  Copier(const Graph& from, Graph& to) : from_(from), to_(to), plant_(from, to), values_(from.value_count()) {
    to.name = from.name;
  }

  Status copy(NodeId id) {
    const plan::Node& node = from_.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(values_[input.value]);
    if (node.label.valid()) to_.set_label(plant_.symbol(node.label));
    WEFT_TRY(made, plant_.node(id, inputs));
    for (std::uint32_t k = 0; k < node.result_count; ++k)
      values_[node.first_result.value + k] = to_.result(made, k);
    return {};
  }

  Status read_as_parameter(ValueId value, std::string_view name) {
    WEFT_TRY(made, ops::add_parameter(to_, name, plant_.type(from_.value(value).type)));
    values_[value.value] = made;
    return {};
  }

  void add_output(Symbol name, ValueId value) { to_.add_output(name, values_[value.value]); }
  void add_output(const plan::Output& output) { plant_.output(output, values_[output.value.value]); }

 private:
  const Graph& from_;
  Graph& to_;
  plan::Transplant plant_;
  std::vector<ValueId> values_;  // in the new plan, by value of the old one
};

struct Cut {
  std::vector<bool> in_batch, in_once;  // by node
  std::vector<ValueId> kept;
};

// Walks backwards from the outputs. Cuts at results that are kept; what they depend on is computed
// once.
Cut cut_at_weights(const Graph& graph) {
  const WeightsOnly weights(graph);
  Cut cut{std::vector<bool>(graph.node_count()), std::vector<bool>(graph.node_count()), {}};
  std::vector<bool> read(graph.value_count());
  for (const plan::Output& output : graph.outputs()) {
    cut.in_batch[graph.value(output.value).producer.value] = true;
    read[output.value.value] = true;
  }
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    const auto need = [&](std::vector<bool>& needed, bool marks) {
      for (const ValueId input : node.node().inputs) {
        needed[graph.value(input).producer.value] = true;
        if (marks) read[input.value] = true;
      }
    };
    if (cut.in_batch[n] && weights.is_kept(node)) {
      cut.in_batch[n] = false;
      cut.in_once[n] = true;
      for (std::size_t k = 0; k < node.result_count(); ++k)
        if (read[node.result(k).value]) cut.kept.push_back(node.result(k));
    } else if (cut.in_batch[n]) {
      need(cut.in_batch, true);
    }
    if (cut.in_once[n]) need(cut.in_once, false);
  }
  return cut;
}

}  // namespace

Result<std::optional<FoldedPlan>> fold_weights(const Graph& graph) {
  const Cut cut = cut_at_weights(graph);
  if (cut.kept.empty()) return std::optional<FoldedPlan>();
  FoldedPlan folded;
  Copier once(graph, folded.once), batch(graph, folded.batch);
  std::vector<std::string> names(graph.value_count());
  for (std::size_t i = 0; i < cut.kept.size(); ++i) {
    names[cut.kept[i].value] = fmt::format("(kept) {}", i);
    WEFT_TRY_STATUS(batch.read_as_parameter(cut.kept[i], names[cut.kept[i].value]));
  }
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    // Unused inputs are copied too, because the feed still fills them.
    const bool fed = &graph.view(NodeId(n)).op() == &ops::input();
    if (cut.in_once[n]) WEFT_TRY_STATUS(once.copy(NodeId(n)));
    if (cut.in_batch[n] || fed) WEFT_TRY_STATUS(batch.copy(NodeId(n)));
  }
  for (const ValueId value : cut.kept) once.add_output(folded.once.symbol(names[value.value]), value);
  for (const plan::Output& output : graph.outputs()) batch.add_output(output);
  return std::optional(std::move(folded));
}

Result<Tensors> compute_once(Graph once, const Weights& weights, const PlanRunOptions& options) {
  WEFT_TRY(program, program::compile(std::make_shared<Graph>(std::move(once)), {.workers = options.workers}));
  WEFT_TRY(rank, exec::Rank::start(std::move(program),
                                   {.workers = options.workers, .memory_limit = options.memory_limit}));
  WEFT_TRY_STATUS(write_weights(*rank, weights));
  WEFT_TRY_STATUS(rank->step());
  Tensors made;
  for (const program::Port& port : rank->program().outputs) {
    WEFT_TRY(held, rank->read(port));
    const std::span<const std::byte> bytes = held.bytes();
    made[port.name] = {port.place.dtype, shape_of(port.place), {bytes.begin(), bytes.end()}};
  }
  return made;
}

}  // namespace weft::run
