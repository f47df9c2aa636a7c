#include "weft/parallel/distribute/distribute.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/parallel/distribute/choose_loops.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/exceptions.h"
#include "weft/parallel/distribute/holdings.h"
#include "weft/parallel/distribute/run_node.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/parallel/distribute/source_layouts.h"
#include "weft/plan/graph/settle_phases.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

class Distributor {
 public:
  Distributor(const plan::Graph& graph, const Distribution& distribution, const DistributeOptions& options,
              const Signatures& signatures, const LoopChoices& choices, const SourceLayouts& sources,
              const StageUses& uses)
      : graph_(graph), sources_(sources), transplant_(graph, made_.graph) {
    made_.graph.name = graph.name;
    made_.mesh = distribution.mesh;
    // Symbols and scopes have the same ids in both plans, so layouts mean the same in both.
    for (std::size_t s = 0; s < graph.symbols().size(); ++s) made_.graph.symbol(graph.text(Symbol(s)));
    for (std::size_t s = 0; s < graph.scope_count(); ++s)
      made_.graph.add_scope(graph.scope(plan::ScopeId(s)));
    holdings_.emplace(graph, made_, options);
    chooser_.emplace(graph, signatures, choices, sources, distribution.mesh, uses, *holdings_);
    find_wanted();
  }

  Result<DistributedPlan> run() && {
    std::vector<ValueId> outputs(graph_.outputs().size());
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      WEFT_TRY_STATUS(add(graph_.view(NodeId(n)), outputs));
    for (std::size_t o = 0; o < outputs.size(); ++o) made_.graph.add_output(graph_.outputs()[o], outputs[o]);
    return std::move(made_);
  }

 private:
  // Outputs by value, and sources by name.
  void find_wanted() {
    outputs_.resize(graph_.value_count());
    for (std::size_t o = 0; o < graph_.outputs().size(); ++o)
      outputs_[graph_.outputs()[o].value.value].push_back(o);
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      if (ops::is_source(graph_.view(NodeId(n)).op()))
        by_name_.emplace(graph_.view(NodeId(n)).word(0), NodeId(n));
  }

  Status add(const NodeView& node, std::vector<ValueId>& outputs) {
    if (ops::is_source(node.op())) {
      WEFT_TRY_STATUS(add_source(node));
    } else {
      WEFT_TRY_STATUS(add_computation(node));
    }
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId value = node.result(k);
      if (const Layout* wanted = chooser_->wanted(value))
        WEFT_TRY_STATUS(holdings_->bring(value, *wanted, node.id()));
      for (const std::size_t o : outputs_[value.value]) {
        WEFT_TRY(output, holdings_->bring(value, layout_of_output(o), node.id()));
        outputs[o] = output;
      }
    }
    return {};
  }

  Status add_source(const NodeView& node) {
    const Layout& layout = sources_.layouts[node.id().value];
    plan::AttributeValue text;  // default: replicated
    if (layout != Layout::replicated(made_.mesh))
      text = made_.graph.symbol(print(layout, made_.mesh, made_.graph.symbols()));
    put_label(node);
    WEFT_TRY(made, transplant_.node(node.id(), {}, &text));
    made_.origin.push_back(node.id());
    holdings_->hold(node.result(0), made_.graph.result(made), layout);
    return {};
  }

  Status add_computation(const NodeView& node) {
    const NodeRun run = chooser_->run(node);
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      WEFT_TRY(operand, holdings_->bring(node.input(i), run.operands[i], node.id()));
      operands.push_back(operand);
    }
    put_label(node);
    WEFT_TRY(made, transplant_.node(node.id(), operands));
    made_.origin.push_back(node.id());
    for (std::size_t k = 0; k < node.result_count(); ++k)
      holdings_->hold(node.result(k), made_.graph.result(made, k), run.results[k]);
    return {};
  }

  void put_label(const NodeView& node) {
    made_.graph.set_label(node.node().label);
    made_.graph.set_scope(node.node().scope);
  }

  // The next value of a source has the source's layout. Other outputs keep the layout in which they
  // are computed, except that partial sums are reduced first.
  Layout layout_of_output(std::size_t o) const {
    const plan::Output& output = graph_.outputs()[o];
    if (const auto source = by_name_.find(graph_.updated(output));
        source != by_name_.end() &&
        graph_.value(graph_.result(source->second)).type == graph_.value(output.value).type)
      return sources_.layouts[source->second.value];
    Layout layout = holdings_->given(output.value);
    for (AxisLayout& axis : layout.axes)
      if (axis.is_partial()) axis = AxisLayout::replicated();
    return layout;
  }

  const plan::Graph& graph_;
  const SourceLayouts& sources_;
  DistributedPlan made_;
  plan::Transplant transplant_;
  std::optional<Holdings> holdings_;
  std::optional<RunChooser> chooser_;
  std::vector<std::vector<std::size_t>> outputs_;         // by value
  std::unordered_map<std::string_view, NodeId> by_name_;  // sources
};

Status check(const plan::Graph& graph, const Distribution& distribution, const DistributeOptions& options) {
  if (is_pipelined(distribution))
    return user_error("stages and micro-batches are not layouts: only the plan of a stage is distributed");
  WEFT_TRY_STATUS(plan::check(distribution.mesh));
  const std::size_t axes = distribution.mesh.axes.size();
  if (axes > kMostAxes)
    return user_error(fmt::format("expected a mesh with at most {} axes, found {}", kMostAxes, axes));
  if (distribution.axes.size() != axes)
    return user_error(
        fmt::format("expected one use per mesh axis: {} axes, {} uses", axes, distribution.axes.size()));
  if (!options.prices.empty() && options.prices.size() != axes)
    return user_error(fmt::format("expected a cost for each mesh axis or for none: {} axes, {} costs", axes,
                                  options.prices.size()));
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (ops::find_communication(*graph.node(NodeId(n)).op) != nullptr)
      return user_error(fmt::format("the plan is already distributed: node {}", describe(graph, NodeId(n))));
  return {};
}

Result<DistributedPlan> spread(const plan::Graph& graph, const Distribution& distribution,
                               const DistributeOptions& options, const Signatures& signatures,
                               const Exceptions& exceptions, const StageUses& uses) {
  const LoopChoices choices = choose_loops(graph, signatures, distribution.mesh, uses, exceptions);
  const SourceLayouts sources = choose_source_layouts(graph, signatures, choices, distribution, uses,
                                                      exceptions, options.smallest_share);
  WEFT_TRY(made, Distributor(graph, distribution, options, signatures, choices, sources, uses).run());
  // The backward pass may read what was moved for an update, if rules made it depend on that.
  WEFT_TRY_STATUS(plan::settle_phases(made.graph));
  return made;
}

Result<std::vector<std::int32_t>> stages_of(const plan::Graph& graph, const Distribution& distribution,
                                            const DistributeOptions& options) {
  if (!has_stage_meshes(distribution)) return std::vector<std::int32_t>();
  if (!options.stages)
    return user_error("some stages use axes differently, but the plan has one mesh without stages");
  return options.stages(graph);
}

}  // namespace

Result<DistributedPlan> distribute(const plan::Graph& graph, const Distribution& distribution,
                                   const DistributeOptions& options) {
  WEFT_TRY_STATUS(check(graph, distribution, options));
  std::optional<Signatures> own;
  const Signatures& signatures = options.signatures != nullptr ? *options.signatures : own.emplace(graph);
  WEFT_TRY(exceptions, Exceptions::resolve(graph, signatures, distribution));
  WEFT_TRY(stages, stages_of(graph, distribution, options));
  WEFT_TRY(uses, StageUses::of(graph, distribution, stages));
  std::vector<NodeId> nodes = choose_decompositions(graph, signatures, distribution.mesh, uses, exceptions);
  if (nodes.empty()) return spread(graph, distribution, options, signatures, exceptions, uses);

  std::optional<DecompositionCache> own_openings;
  DecompositionCache& openings =
      options.openings != nullptr ? *options.openings : own_openings.emplace(graph);
  WEFT_TRY(open, openings.of(nodes));
  WEFT_TRY(open_exceptions, Exceptions::resolve(open->graph, open->signatures, distribution));
  WEFT_TRY(open_stages, stages_of(open->graph, distribution, options));
  WEFT_TRY(plan, spread(open->graph, distribution, options, open->signatures, open_exceptions,
                        uses.with(open_stages)));
  plan.opened = std::move(nodes);
  return plan;
}

}  // namespace weft::distribute
