#include "weft/planner/search/distribution/fold.h"

#include <algorithm>
#include <map>

#include "weft/plan/graph/transplant.h"

namespace weft::search {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::ScopeId;
using plan::ValueId;

constexpr std::int64_t kOutside = -1;

// A REPEAT, identified by the scope around it and its name.
using Repeat = std::pair<std::uint32_t, std::uint32_t>;

struct Place {
  Repeat repeat = {};
  std::int64_t iteration = kOutside;
};

// The outermost REPEAT around a scope.
Place fold_place_of(const Graph& graph, ScopeId scope) {
  Place place;
  for (int depth = 0; scope.valid() && depth < plan::kDeepestScope; ++depth) {
    const plan::Scope& here = graph.scope(scope);
    if (here.iteration >= 0)
      place = {{static_cast<std::uint32_t>(here.parent.value), static_cast<std::uint32_t>(here.name.value)},
               here.iteration};
    scope = here.parent;
  }
  return place;
}

// The REPEAT iteration of every node. Update nodes are outside all scopes: each belongs to the
// layer of its parameter, and a state to the only node that reads it.
class Homes {
 public:
  explicit Homes(const Graph& graph) : graph_(graph), of_node_(graph.node_count()) {
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      of_node_[n] = fold_place_of(graph, graph.node(NodeId(n)).scope);
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      if (graph.phase(NodeId(n)) == plan::Phase::update) adopt(NodeId(n));
  }

  const Place& operator[](NodeId node) const { return of_node_[node.value]; }

  // The layer calls of the REPEAT with the most iterations, or of all REPEATs with that many, since
  // the towers of a model grow together. A REPEAT may call several layers, each with its own scope,
  // whose iterations alternate.
  std::vector<Repeat> longest(Folded folded) const {
    struct Call {
      std::int64_t iterations = 0;
      std::size_t first = 0, second = 0;  // first nodes of iterations 0 and 1
    };
    std::map<Repeat, Call> calls;
    for (std::size_t n = of_node_.size(); n-- > 0;) {
      const Place& place = of_node_[n];
      if (place.iteration == kOutside) continue;
      Call& call = calls[place.repeat];
      call.iterations = std::max(call.iterations, place.iteration + 1);
      if (place.iteration == 0) call.first = n;
      if (place.iteration == 1) call.second = n;
    }
    std::vector<Repeat> together;
    const auto most = std::ranges::max_element(calls, {}, [](const auto& entry) {
      return std::pair(entry.second.iterations, -static_cast<std::int64_t>(entry.second.first));
    });
    if (most == calls.end()) return together;
    for (const auto& [repeat, call] : calls)
      if (call.iterations == most->second.iterations &&
          (folded == Folded::all || (repeat.first == most->first.first && call.first >= most->second.first &&
                                     call.first < most->second.second)))
        together.push_back(repeat);
    return together;
  }

 private:
  void adopt(NodeId node) {
    Place home;
    for (const ValueId input : graph_.node(node).inputs) {
      const Place& place = of_node_[graph_.value(input).producer.value];
      if (place.iteration == kOutside) continue;
      if (home.iteration != kOutside && home.iteration != place.iteration) return;
      home = place;
    }
    if (home.iteration == kOutside) return;
    of_node_[node.value] = home;
    // Moments belong to this node. The step number, a scalar, is shared.
    for (const ValueId input : graph_.node(node).inputs) {
      const NodeId producer = graph_.value(input).producer;
      const bool moment = graph_.node(producer).inputs.empty() && graph_.type(input).rank() > 0;
      if (moment) of_node_[producer.value] = home;
    }
  }

  const Graph& graph_;
  std::vector<Place> of_node_;
};

struct Layers {
  std::vector<std::vector<NodeId>> nodes;  // by iteration, in order
  std::vector<std::int64_t> iteration;     // by node; kOutside
  std::vector<std::size_t> position;       // by node: index within its iteration

  std::int64_t count() const { return static_cast<std::int64_t>(nodes.size()); }
};

Layers layers_of(const Graph& graph, Folded folded) {
  Layers layers;
  const Homes homes(graph);
  const std::vector<Repeat> repeats = homes.longest(folded);
  layers.iteration.assign(graph.node_count(), kOutside);
  layers.position.assign(graph.node_count(), 0);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const Place& place = homes[NodeId(n)];
    if (place.iteration == kOutside || std::ranges::find(repeats, place.repeat) == repeats.end()) continue;
    const auto i = static_cast<std::size_t>(place.iteration);
    if (layers.nodes.size() <= i) layers.nodes.resize(i + 1);
    layers.iteration[n] = place.iteration;
    layers.position[n] = layers.nodes[i].size();
    layers.nodes[i].push_back(NodeId(n));
  }
  return layers;
}

bool are_alike(const Graph& graph, std::span<const NodeId> a, std::span<const NodeId> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const plan::Node &x = graph.node(a[k]), &y = graph.node(b[k]);
    if (x.op != y.op || x.inputs.size() != y.inputs.size() || x.result_count != y.result_count) return false;
    for (std::size_t r = 0; r < x.result_count; ++r)
      if (graph.value(graph.result(a[k], r)).type != graph.value(graph.result(b[k], r)).type) return false;
  }
  return true;
}

// All layers but the first and the last, which may differ since they connect to embedding and head.
bool middle_is_alike(const Graph& graph, const Layers& layers) {
  for (std::int64_t i = 2; i + 1 < layers.count(); ++i)
    if (!are_alike(graph, layers.nodes[1], layers.nodes[static_cast<std::size_t>(i)])) return false;
  return true;
}

constexpr std::int64_t kFewest = 4;

class Folding {
 public:
  Folding(const Graph& graph, const Layers& layers, std::int64_t keep)
      : graph_(graph),
        layers_(layers),
        front_(keep / 2),
        back_(layers.count() - (keep - keep / 2)),
        values_(graph.value_count()) {}

  std::optional<Graph> run() {
    Graph folded;
    folded.name = graph_.name;
    plan::Transplant transplant(graph_, folded);
    std::vector<ScopeId> scopes;
    for (std::size_t s = 0; s < graph_.scope_count(); ++s) {
      plan::Scope scope = graph_.scope(ScopeId(s));
      scope.name = transplant.symbol(scope.name);
      if (scope.parent.valid()) scope.parent = scopes[scope.parent.value];
      scopes.push_back(folded.add_scope(scope));
    }
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      if (is_dropped(layers_.iteration[n])) continue;
      const plan::Node& node = graph_.node(NodeId(n));
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) {
        const std::optional<ValueId> seen = seen_from(layers_.iteration[n], input);
        if (!seen || !values_[seen->value].valid()) return std::nullopt;
        inputs.push_back(values_[seen->value]);
      }
      folded.set_label(node.label.valid() ? transplant.symbol(node.label) : Symbol());
      folded.set_scope(node.scope.valid() ? scopes[node.scope.value] : ScopeId());
      const Result<NodeId> made = transplant.node(NodeId(n), inputs);
      if (!made.ok()) return std::nullopt;
      for (std::size_t k = 0; k < node.result_count; ++k)
        values_[graph_.result(NodeId(n), k).value] = folded.result(*made, k);
    }
    for (const plan::Output& output : graph_.outputs())
      if (values_[output.value.value].valid()) transplant.output(output, values_[output.value.value]);
    return folded;
  }

 private:
  bool is_dropped(std::int64_t iteration) const { return iteration >= front_ && iteration < back_; }

  // The value that a node of `iteration` reads instead of `value`.
  std::optional<ValueId> seen_from(std::int64_t iteration, ValueId value) const {
    const plan::Value& made = graph_.value(value);
    const std::int64_t from = layers_.iteration[made.producer.value];
    if (!is_dropped(from)) return value;
    std::int64_t instead = 0;
    if (iteration == front_ - 1 && from == front_)
      instead = back_;
    else if (iteration == back_ && from == back_ - 1)
      instead = front_ - 1;
    else
      return std::nullopt;
    const std::vector<NodeId>& nodes = layers_.nodes[static_cast<std::size_t>(instead)];
    const std::size_t position = layers_.position[made.producer.value];
    if (position >= nodes.size()) return std::nullopt;
    return graph_.result(nodes[position], made.result);
  }

  const Graph& graph_;
  const Layers& layers_;
  std::int64_t front_, back_;    // iterations [front, back) are dropped
  std::vector<ValueId> values_;  // in the folded plan
};

}  // namespace

std::int64_t repeated_layers(const Graph& graph, Folded folded) {
  const Layers layers = layers_of(graph, folded);
  return layers.count() > kFewest && middle_is_alike(graph, layers) ? layers.count() : 0;
}

std::vector<std::int64_t> layers_of_nodes(const Graph& graph, Folded folded) {
  return layers_of(graph, folded).iteration;
}

std::optional<Graph> fold(const Graph& graph, std::int64_t layers, Folded folded) {
  const Layers all = layers_of(graph, folded);
  if (layers < kFewest || layers >= all.count() || !middle_is_alike(graph, all)) return std::nullopt;
  return Folding(graph, all, layers).run();
}

}  // namespace weft::search
