#include "weft/parallel/train/recompute_cut.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/max_flow.h"
#include "weft/base/nearest.h"
#include "weft/parallel/train/chain.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::Phase;
using plan::ScopeId;
using plan::ValueId;
using Of = Allowance::Of;

// Bytes per flop. Recomputing whole layers is meant to save memory, so work only breaks near ties.
// In selective mode a byte is worth a thousand flops: attention scores cost less than that,
// products more.
constexpr double kBytesAFlopOfLayers = 1e-6, kBytesAFlopSelective = 1e-3;

// Constants and positions are free, like sources.
bool is_forward_work(const Graph& graph, NodeId node) {
  return graph.phase(node) == Phase::forward && !graph.node(node).inputs.empty();
}

// Layer calls in one iteration of a REPEAT form one layer, although each has its own scope.
void number_iterations(const Graph& graph, Allowance& made) {
  std::map<std::pair<std::uint32_t, std::int32_t>, std::int32_t> numbers;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (!is_forward_work(graph, NodeId(n))) continue;
    const ScopeId scope = iteration_of(graph, graph.node(NodeId(n)).scope);
    if (!scope.valid()) continue;
    const plan::Scope& at = graph.scope(scope);
    const auto key = std::pair(static_cast<std::uint32_t>(at.parent.value), at.iteration);
    made.layer[n] = numbers.try_emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
  }
  made.layers = static_cast<std::int32_t>(numbers.size());
}

// For a model without a REPEAT: about as many runs as parts per run.
void number_parts(const Graph& graph, Allowance& made) {
  const Chain chain = chain_of(graph);
  const auto parts = static_cast<double>(chain.parts.size());
  const auto run = static_cast<std::size_t>(std::max(1.0, std::ceil(std::sqrt(parts))));
  for (std::size_t p = 0; p < chain.parts.size(); ++p) {
    made.layers = static_cast<std::int32_t>(p / run) + 1;
    for (const NodeId node : chain.parts[p].nodes)
      if (is_forward_work(graph, node)) made.layer[node.value] = made.layers - 1;
  }
}

bool is_product_with_parameters(const NodeView& node, const std::vector<bool>& learned) {
  if (node.op().work(node).multiply_adds == 0) return false;
  return std::ranges::any_of(node.node().inputs, [&](ValueId input) { return learned[input.value]; });
}

// By value: computed from parameters only.
std::vector<bool> made_of_parameters(const Graph& graph) {
  std::vector<bool> learned(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    bool is_learned = &node.op() == &ops::parameter(), of_others = node.input_count() == 0 && !is_learned;
    for (const ValueId input : node.node().inputs) (learned[input.value] ? is_learned : of_others) = true;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      learned[node.result(k).value] = is_learned && !of_others;
  }
  return learned;
}

// Whether the scope is within one of that name: "block.3", or "block" for all of its iterations.
bool is_scope(const Graph& graph, ScopeId scope, std::string_view name) {
  for (int depth = 0; scope.valid() && depth < plan::kDeepestScope; ++depth) {
    const plan::Scope& at = graph.scope(scope);
    if (graph.text(at.name) == name || graph.path(scope, {}) == name) return true;
    scope = at.parent;
  }
  return false;
}

Error unknown_name(const Graph& graph, const std::string& name) {
  std::set<std::string> known;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::Node& node = graph.node(NodeId(n));
    if (node.label.valid()) known.emplace(graph.text(node.label));
    if (node.scope.valid()) known.insert(graph.path(iteration_of(graph, node.scope), {}));
  }
  known.erase("");
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "layers, selective, none, or entries and layers that EXPLAIN lists";
  return user_error(fmt::format("there is nothing named {} to recompute", name), std::move(hint));
}

Status allow_named(const Graph& graph, const Recompute& what, Allowance& made) {
  for (const std::string& name : what.names) {
    bool found = false;
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> asked;  // by scope and label
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::Node& node = graph.node(NodeId(n));
      if (!is_forward_work(graph, NodeId(n))) continue;
      const auto key = std::pair(static_cast<std::uint32_t>(node.scope.value),
                                 static_cast<std::uint32_t>(node.label.value));
      const auto [known, fresh] = asked.try_emplace(key);
      if (fresh)
        known->second = (node.label.valid() &&
                         (graph.text(node.label) == name || graph.path(node.scope, node.label) == name)) ||
                        is_scope(graph, node.scope, name);
      if (!known->second) continue;
      found = true;
      made.of_node[n] = Of::all;
    }
    if (!found) return unknown_name(graph, name);
  }
  return {};
}

// Processes one layer at a time, from the last. Values that its copies read from other layers are
// kept, and then cost the others nothing.
class KeepCutter {
 public:
  KeepCutter(const Graph& graph, const Allowance& allowance)
      : graph_(graph),
        allowance_(allowance),
        needed_(graph.value_count()),
        kept_(graph.value_count()),
        repeats_(graph.node_count()),
        members_(static_cast<std::size_t>(allowance.layers) + 1) {}

  std::vector<bool> run() && {
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const plan::Node& node = graph_.node(NodeId(n));
      if (allowance_.of_node[n] != Of::nothing) members_[layer(n)].push_back(NodeId(n));
      if (node.when.phase == Phase::forward) continue;
      for (const ValueId input : node.inputs)
        (node.when.phase == Phase::backward ? needed_ : kept_)[input.value] = true;
    }
    for (const plan::Output& output : graph_.outputs()) kept_[output.value.value] = true;
    for (std::size_t k = members_.size(); k-- > 0;) cut(members_[k]);
    return std::move(repeats_);
  }

 private:
  // Nodes in no layer come last: the head, and little before the first layer.
  std::size_t layer(std::size_t node) const {
    const std::int32_t at = allowance_.layer[node];
    return at < 0 ? members_.size() - 1 : static_cast<std::size_t>(at);
  }

  static constexpr double kScale = 1024;  // units per byte, so that small work counts

  Amount bytes(ValueId value) const {
    return static_cast<Amount>(kScale * static_cast<double>(graph_.type(value).bytes())) + 1;
  }
  Amount work(NodeId node) const {
    const NodeView view = graph_.view(node);
    if (view.op().is_view()) return 0;
    const double rate =
        allowance_.of_node[node.value] == Of::all ? kBytesAFlopOfLayers : kBytesAFlopSelective;
    const double price = kScale * rate * view.op().work(view).flops;
    return static_cast<Amount>(std::min(price, 1e17)) + 1;  // prefers running less often among equals
  }

  std::int32_t value_node(ValueId value) {
    const auto [found, fresh] = number_.try_emplace(value.value, 0);
    if (!fresh) return found->second;
    found->second = flow_->add_node();
    const NodeId maker = graph_.value(value).producer;
    if (kept_[value.value] || !is_forward_work(graph_, maker)) return found->second;  // no cost
    const auto member = again_.find(maker.value);
    const bool is_view = graph_.node(maker).op->is_view();
    flow_->add_arc(found->second, member == again_.end() ? kSink : member->second,
                   is_view && member != again_.end() ? kNoLimit : bytes(value));
    return found->second;
  }

  void cut(const std::vector<NodeId>& members) {
    if (members.empty()) return;
    MaxFlow flow(2);
    flow_ = &flow;
    number_.clear();
    again_.clear();
    for (const NodeId node : members) again_[node.value] = flow.add_node();
    for (const NodeId node : members) {
      const std::int32_t here = again_[node.value];
      flow.add_arc(here, kSink, work(node));
      for (const ValueId input : graph_.node(node).inputs) flow.add_arc(here, value_node(input), kNoLimit);
      for (std::size_t k = 0; k < graph_.node(node).result_count; ++k)
        if (const ValueId result = graph_.result(node, k); needed_[result.value])
          flow.add_arc(kSource, value_node(result), kNoLimit);
    }
    flow.run(kSource, kSink);
    for (const NodeId node : members) {
      if (!flow.on_source_side(again_[node.value])) continue;
      repeats_[node.value] = true;
      for (const ValueId input : graph_.node(node).inputs) {
        const auto member = again_.find(graph_.value(input).producer.value);
        if (member == again_.end() || !flow.on_source_side(member->second)) kept_[input.value] = true;
      }
    }
  }

  static constexpr std::int32_t kSource = 0, kSink = 1;

  const Graph& graph_;
  const Allowance& allowance_;
  std::vector<bool> needed_, kept_;  // by value: by the backward phase; kept in any case
  std::vector<bool> repeats_;        // by node
  std::vector<std::vector<NodeId>> members_;
  MaxFlow* flow_ = nullptr;  // of the current layer
  std::map<std::uint32_t, std::int32_t> number_, again_;
};

}  // namespace

Result<Allowance> allowed(const Graph& graph, const Recompute& what) {
  Allowance made;
  made.of_node.assign(graph.node_count(), Of::nothing);
  made.layer.assign(graph.node_count(), -1);
  number_iterations(graph, made);
  if (made.layers == 0 && (what.layers || what.selective)) number_parts(graph, made);
  const std::vector<bool> learned = what.selective ? made_of_parameters(graph) : std::vector<bool>();
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (!is_forward_work(graph, NodeId(n))) continue;
    if (what.layers && made.layer[n] >= 0)
      made.of_node[n] = Of::all;
    else if (what.selective && !is_product_with_parameters(graph.view(NodeId(n)), learned))
      made.of_node[n] = Of::little_work;
  }
  WEFT_TRY_STATUS(allow_named(graph, what, made));
  return made;
}

std::vector<bool> nodes_to_repeat(const Graph& graph, const Allowance& allowance) {
  return KeepCutter(graph, allowance).run();
}

}  // namespace weft::train
