// test/unit/case/bucket_case.h -- a plan with its gradient sums in a given number of buckets,
// regardless of cost.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/merge_exchanges.h"

namespace weft::search {

// All-reduces of one operand that feed updates, by axis.
inline std::map<std::string, std::vector<plan::NodeId>> summed_gradients(const plan::Graph& graph) {
  std::vector<bool> updates(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(plan::NodeId(n)).when.phase == plan::Phase::update)
      for (const plan::ValueId input : graph.node(plan::NodeId(n)).inputs) updates[input.value] = true;
  std::map<std::string, std::vector<plan::NodeId>> found;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() == &ops::all_reduce() && updates[node.result(0).value])
      found[std::string(node.word(0))].push_back(node.id());
  }
  return found;
}

inline distribute::DistributedPlan in_buckets(const distribute::DistributedPlan& plan, std::size_t members,
                                              bool low = false) {
  std::vector<std::vector<plan::NodeId>> buckets;
  for (const auto& [axis, nodes] : summed_gradients(plan.graph))
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i % members == 0) buckets.emplace_back();
      buckets.back().push_back(nodes[i]);
    }
  std::erase_if(buckets, [](const auto& bucket) { return bucket.size() < 2; });
  if (buckets.empty()) throw std::runtime_error("nothing to put in a bucket");
  auto made = merge_exchanges(plan, buckets, low);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

inline std::size_t all_reduces(const plan::Graph& graph) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    count += graph.node(plan::NodeId(n)).op == &ops::all_reduce();
  return count;
}

}  // namespace weft::search
