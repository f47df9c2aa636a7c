#include "weft/planner/search/rewrite/shared_nodes.h"

#include "weft/plan/graph/verify.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {

std::optional<Step> share_equal_nodes(const plan::Graph& graph, const rule::Draft& draft,
                                      const Pricing& pricing, std::int64_t& priced) {
  Step step{"(merge equal nodes)", {}, 0};
  const std::vector<bool> runs = cost::nodes_that_run(graph, pricing.learns);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeId node(n);
    if (!runs[n] || draft.alive(node)) continue;
    step.change -= pricing.seconds(graph.view(node));
    ++priced;
    step.replaced.push_back(plan::describe(graph, node));
  }
  if (step.replaced.empty()) return std::nullopt;
  return step;
}

}  // namespace weft::search
