#include "weft/planner/search/distribution/rank_exchanges.h"

#include <algorithm>

#include "weft/plan/spmd/localize.h"

namespace weft::search {

Result<RankExchanges> exchanges_of_first_rank(const PredictedPlan& before) {
  RankExchanges found;
  const auto first = std::ranges::find_if(before.prediction.classes, [](const sim::RankClass& one) {
    return std::ranges::find(one.ranks, 0) != one.ranks.end();
  });
  if (first == before.prediction.classes.end() || first->timeline.tasks.empty()) return found;
  found.ranks = &*first;
  const distribute::DistributedPlan& plan = before.plan;
  WEFT_TRY(local, spmd::localize(plan.graph, plan.mesh, plan.layouts, 0, spmd::Exchanges::stay));
  const program::Program& program = *first->program;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const auto* const exchange = std::get_if<program::Exchange>(&program.units[program.tasks[t].unit].kernel);
    if (exchange == nullptr) continue;
    const auto n = static_cast<std::size_t>(std::ranges::upper_bound(local.ends, exchange->node.value) -
                                            local.ends.begin());
    found.exchanges.push_back({plan::NodeId(n), static_cast<std::uint32_t>(t)});
  }
  return found;
}

}  // namespace weft::search
