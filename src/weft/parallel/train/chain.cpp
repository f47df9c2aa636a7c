#include "weft/parallel/train/chain.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ScopeId;
using plan::ValueId;

constexpr std::int32_t kNowhere = -1;

std::uint64_t key_of_entry(const Entry& entry) {
  return static_cast<std::uint64_t>(entry.scope.value) << 32 | entry.label.value;
}

Entry entry_of(const plan::Node& node) { return {node.scope, node.label}; }

// A scope's path without iteration numbers.
std::string place_of(const Graph& graph, ScopeId scope) {
  std::string place;
  for (int depth = 0; scope.valid() && depth < plan::kDeepestScope; ++depth) {
    const plan::Scope& here = graph.scope(scope);
    place += fmt::format("{}{}.", graph.text(here.name), here.iteration >= 0 ? "#" : "");
    scope = here.parent;
  }
  return place;
}

class Cutter {
 public:
  Cutter(const Graph& graph, Skips skips)
      : graph_(graph), skips_(skips), home_(graph.node_count(), kNowhere) {}

  Chain run() {
    find_flow();
    cut();
    assign_rest();
    name_kinds();
    find_stretches();
    return std::move(chain_);
  }

 private:
  bool is_forward(NodeId node) const { return graph_.phase(node) == plan::Phase::forward; }

  // Finds the nodes that depend on an input. The rest (masks, positions, sums of parameters) is
  // available from the start and belongs to its first reader.
  void find_flow() {
    std::vector<bool> flows(graph_.value_count());
    last_reader_.assign(graph_.value_count(), 0);
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (!is_forward(node.id())) continue;
      bool flowing = &node.op() == &ops::input();
      for (const ValueId value : node.node().inputs) flowing = flowing || flows[value.value];
      for (std::size_t k = 0; k < node.result_count(); ++k) flows[node.result(k).value] = flowing;
      if (!flowing || ops::is_source(node.op())) continue;
      flow_.push_back(NodeId(n));
      for (const ValueId value : node.node().inputs) last_reader_[value.value] = n;
      last_of_entry_[key_of_entry(entry_of(node.node()))] = n;
    }
    if (skips_ == Skips::allowed) find_skips();
  }

  // Values that are read in several iterations but made in none of them.
  void find_skips() {
    skips_over_.assign(graph_.value_count(), false);
    std::vector<ScopeId> reader(graph_.value_count());
    for (const NodeId id : flow_) {
      const ScopeId here = iteration_of(graph_, graph_.node(id).scope);
      if (!here.valid()) continue;
      for (const ValueId value : graph_.node(id).inputs) {
        const ScopeId maker = iteration_of(graph_, graph_.node(graph_.value(value).producer).scope);
        if (here == maker) continue;
        ScopeId& first = reader[value.value];
        if (!first.valid()) first = here;
        skips_over_[value.value] = skips_over_[value.value] || first != here;
      }
    }
  }
  bool goes_around(ValueId value) const { return !skips_over_.empty() && skips_over_[value.value]; }

  bool multiplies_by_parameter(const NodeView& node) const {
    for (std::size_t i = 0; i < node.input_count(); ++i)
      if (graph_.node(graph_.value(node.input(i)).producer).op == &ops::parameter() &&
          node.input_type(i).rank() >= 2)
        return true;
    return false;
  }

  // The nodes between two places where the flow may be split.
  struct Run {
    std::vector<NodeId> nodes;
    bool multiplies = false;
  };

  std::vector<Run> runs() {
    std::vector<Run> found(1);
    std::size_t open_until = 0;           // the last node of entries that have started
    std::map<std::size_t, int> crossing;  // number of live values whose last reader is this node
    int alive = 0;
    for (const NodeId id : flow_) {
      const NodeView node = graph_.view(id);
      found.back().nodes.push_back(id);
      found.back().multiplies |= multiplies_by_parameter(node);
      open_until = std::max(open_until, last_of_entry_[key_of_entry(entry_of(node.node()))]);
      while (!crossing.empty() && crossing.begin()->first <= id.value) {
        alive -= crossing.begin()->second;
        crossing.erase(crossing.begin());
      }
      for (std::size_t k = 0; k < node.result_count(); ++k) {
        const std::size_t last = last_reader_[node.result(k).value];
        if (last <= id.value || goes_around(node.result(k))) continue;
        ++crossing[last];
        ++alive;
      }
      if (alive <= 1 && open_until <= id.value) found.emplace_back();
    }
    if (found.back().nodes.empty()) found.pop_back();
    return found;
  }

  // Merges runs up to the next product or iteration.
  void cut() {
    bool multiplies = false;
    ScopeId iteration;
    for (const Run& run : runs()) {
      const ScopeId here = iteration_of(graph_, graph_.node(run.nodes.front()).scope);
      if (chain_.parts.empty() || here != iteration || (multiplies && run.multiplies)) {
        chain_.parts.emplace_back();
        multiplies = false;
      }
      iteration = here;
      multiplies |= run.multiplies;
      for (const NodeId node : run.nodes)
        home_[node.value] = static_cast<std::int32_t>(chain_.parts.size()) - 1;
    }
  }

  // Assigns all other nodes to the part of their entry, or else to that of their operands.
  void assign_rest() {
    std::unordered_map<std::uint64_t, std::int32_t> of_entry;
    for (const NodeId node : flow_)
      of_entry.emplace(key_of_entry(entry_of(graph_.node(node))), home_[node.value]);
    // Other forward nodes belong to their first reader, so readers are visited from the last node
    // on.
    for (std::size_t n = graph_.node_count(); n-- > 0;) {
      if (home_[n] == kNowhere || !is_forward(NodeId(n))) continue;
      for (const ValueId value : graph_.node(NodeId(n)).inputs)
        assign_part(graph_.value(value).producer, home_[n]);
    }
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const plan::Node& node = graph_.node(NodeId(n));
      if (ops::is_source(*node.op) || node.inputs.empty()) {
        home_[n] = kNowhere;
        continue;
      }
      if (home_[n] == kNowhere && (node.scope.valid() || node.label.valid()))
        if (const auto known = of_entry.find(key_of_entry(entry_of(node))); known != of_entry.end())
          home_[n] = known->second;
      for (const ValueId value : node.inputs)
        if (home_[n] == kNowhere) home_[n] = home_[graph_.value(value).producer.value];
      if (home_[n] != kNowhere) keep(NodeId(n));
    }
  }

  void assign_part(NodeId node, std::int32_t part) {
    if (!graph_.node(node).inputs.empty() &&
        (home_[node.value] == kNowhere || (!is_flow(node) && part < home_[node.value])))
      home_[node.value] = part;
  }
  bool is_flow(NodeId node) const { return std::ranges::binary_search(flow_, node); }

  void keep(NodeId n) {
    Part& part = chain_.parts[static_cast<std::size_t>(home_[n.value])];
    part.nodes.push_back(n);
    const Entry entry = entry_of(graph_.node(n));
    if (is_forward(n) && entry.label.valid() && std::ranges::find(part.entries, entry) == part.entries.end())
      part.entries.push_back(entry);
  }

  void name_kinds() {
    std::map<std::string, std::size_t> kinds;
    for (std::size_t p = 0; p < chain_.parts.size(); ++p) {
      Part& part = chain_.parts[p];
      std::string text;
      bool repeats = false;
      for (const Entry& entry : part.entries) {
        repeats = repeats || iteration_of(graph_, entry.scope).valid();
        text += fmt::format("{}{};", place_of(graph_, entry.scope), graph_.text(entry.label));
      }
      if (!repeats) text += fmt::format("part {}", p);
      part.kind = kinds.try_emplace(std::move(text), kinds.size()).first->second;
    }
    chain_.kinds = kinds.size();
  }

  void find_stretches() {
    const std::vector<Part>& parts = chain_.parts;
    std::vector<bool> seen(chain_.kinds);
    for (std::size_t p = 0; p < parts.size();) {
      if (seen[parts[p].kind]) {
        chain_.why_not = "its layers repeat in another order";
        return;
      }
      std::size_t next = p + 1;
      while (next < parts.size() && parts[next].kind != parts[p].kind) ++next;
      Stretch stretch{p, next < parts.size() ? next - p : 1, 1};
      const auto again = [&](std::size_t from) {
        for (std::size_t k = 0; k < stretch.length; ++k)
          if (from + k >= parts.size() || parts[from + k].kind != parts[p + k].kind) return false;
        return true;
      };
      while (again(stretch.end())) ++stretch.times;
      // A kind that recurs, but not in direct succession, would be planned twice.
      if (stretch.times == 1) stretch.length = 1;
      for (std::size_t k = 0; k < stretch.length; ++k) {
        if (seen[parts[p + k].kind]) {
          chain_.why_not = "its layers repeat in another order";
          return;
        }
        seen[parts[p + k].kind] = true;
      }
      p = stretch.end();
      chain_.stretches.push_back(stretch);
    }
    if (parts.size() < 2) chain_.why_not = "it has no cut with only one live value";
  }

  const Graph& graph_;
  const Skips skips_;
  std::vector<bool> skips_over_;    // by value; empty: none
  std::vector<std::int32_t> home_;  // by node: the number of its part
  std::vector<NodeId> flow_;
  std::vector<std::size_t> last_reader_;  // by value: in the forward pass
  std::unordered_map<std::uint64_t, std::size_t> last_of_entry_;
  Chain chain_;
};

}  // namespace

ScopeId iteration_of(const Graph& graph, ScopeId scope) {
  ScopeId found;
  for (int depth = 0; scope.valid() && depth < plan::kDeepestScope; ++depth) {
    if (graph.scope(scope).iteration >= 0) found = scope;
    scope = graph.scope(scope).parent;
  }
  return found;
}

Chain chain_of(const Graph& graph, Skips skips) { return Cutter(graph, skips).run(); }

}  // namespace weft::train
