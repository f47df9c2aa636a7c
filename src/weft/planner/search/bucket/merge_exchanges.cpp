#include "weft/planner/search/bucket/merge_exchanges.h"

#include <functional>
#include <queue>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Which nodes are merged, and the order of all nodes.
class MergedOrder {
 public:
  MergedOrder(const plan::Graph& graph, std::span<const std::vector<NodeId>> buckets)
      : graph_(graph), stands_at_(graph.node_count()), members_(graph.node_count()) {
    for (std::size_t n = 0; n < graph.node_count(); ++n) stands_at_[n] = n;
    for (const std::vector<NodeId>& bucket : buckets) {
      std::size_t last = 0;
      for (const NodeId member : bucket) last = std::max<std::size_t>(last, member.value);
      for (const NodeId member : bucket) stands_at_[member.value] = last;
      members_[last] = bucket;
    }
  }

  std::span<const NodeId> members(std::size_t node) const { return members_[node]; }

  // Topological order, by original position. Incomplete if nodes wait for each other.
  std::vector<std::size_t> run() const {
    std::vector<std::vector<std::size_t>> after(graph_.node_count());
    std::vector<std::size_t> waits(graph_.node_count());
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      for (const ValueId input : graph_.node(NodeId(n)).inputs) {
        const std::size_t from = stands_at_[graph_.value(input).producer.value], to = stands_at_[n];
        after[from].push_back(to);
        ++waits[to];
      }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      if (stands_at_[n] == n && waits[n] == 0) ready.push(n);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t node = ready.top();
      ready.pop();
      order.push_back(node);
      for (const std::size_t next : after[node])
        if (--waits[next] == 0) ready.push(next);
    }
    return order;
  }

  std::size_t count() const {
    std::size_t count = 0;
    for (std::size_t n = 0; n < stands_at_.size(); ++n) count += stands_at_[n] == n;
    return count;
  }

 private:
  const plan::Graph& graph_;
  std::vector<std::size_t> stands_at_;
  std::vector<std::vector<NodeId>> members_;
};

}  // namespace

Result<distribute::DistributedPlan> merge_exchanges(const distribute::DistributedPlan& plan,
                                                    std::span<const std::vector<NodeId>> buckets, bool low) {
  const plan::Graph& graph = plan.graph;
  const MergedOrder merged(graph, buckets);
  const std::vector<std::size_t> order = merged.run();
  if (order.size() != merged.count()) return user_error("buckets would wait for each other");
  distribute::DistributedPlan made;
  made.mesh = plan.mesh;
  made.opened = plan.opened;
  made.time = plan.time;
  made.graph.name = graph.name;
  plan::Transplant moved(graph, made.graph);
  std::vector<plan::ScopeId> scopes;
  for (std::size_t s = 0; s < graph.scope_count(); ++s) {
    plan::Scope scope = graph.scope(plan::ScopeId(s));
    if (scope.parent.valid()) scope.parent = scopes[scope.parent.value];
    if (scope.name.valid()) scope.name = moved.symbol(scope.name);
    scopes.push_back(made.graph.add_scope(scope));
  }
  std::vector<ValueId> values(graph.value_count());
  for (const std::size_t n : order) {
    const plan::Node& node = graph.node(NodeId(n));
    made.graph.set_label(node.label.valid() ? moved.symbol(node.label) : Symbol());
    made.graph.set_scope(node.scope.valid() ? scopes[node.scope.value] : plan::ScopeId());
    made.graph.set_when(node.when);
    std::vector<NodeId> members(merged.members(n).begin(), merged.members(n).end());
    const bool is_bucket = !members.empty();
    if (!is_bucket) members.push_back(NodeId(n));
    std::vector<ValueId> inputs;
    for (const NodeId member : members)
      for (const ValueId input : graph.node(member).inputs) inputs.push_back(values[input.value]);
    // The last attribute of an all-reduce.
    const plan::AttributeValue priority = made.graph.symbol(ops::kLowPriority);
    WEFT_TRY(added, moved.node(NodeId(n), inputs, low && is_bucket ? &priority : nullptr));
    std::size_t result = 0;
    for (const NodeId member : members)
      for (std::size_t k = 0; k < graph.node(member).result_count; ++k)
        values[graph.result(member, k).value] = made.graph.result(added, result++);
    made.origin.push_back(plan.origin[n]);
    made.own.push_back(plan.is_own(NodeId(n)));
  }
  for (const plan::Output& output : graph.outputs()) moved.output(output, values[output.value.value]);
  WEFT_TRY(layouts, spmd::infer_layouts(made.graph, made.mesh));
  made.layouts = std::move(layouts);
  return made;
}

}  // namespace weft::search
