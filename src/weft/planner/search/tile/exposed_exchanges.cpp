#include "weft/planner/search/tile/exposed_exchanges.h"

#include <algorithm>

#include "weft/planner/search/distribution/rank_exchanges.h"

namespace weft::search {

Result<std::vector<double>> exposed_shares(const PredictedPlan& before) {
  std::vector<double> shares(before.plan.graph.node_count());
  WEFT_TRY(first, exchanges_of_first_rank(before));
  if (first.ranks == nullptr) return shares;
  const program::Program& program = *first.ranks->program;
  const std::vector<program::TaskTime>& times = first.ranks->timeline.tasks;
  // Intervals of computation, merged.
  std::vector<program::TaskTime> busy;
  for (std::size_t t = 0; t < times.size(); ++t)
    if (!std::holds_alternative<program::Exchange>(program.units[program.tasks[t].unit].kernel))
      busy.push_back(times[t]);
  std::ranges::sort(busy, {}, &program::TaskTime::begin);
  std::vector<program::TaskTime> spans;
  for (const program::TaskTime& task : busy) {
    if (spans.empty() || task.begin > spans.back().end)
      spans.push_back(task);
    else
      spans.back().end = std::max(spans.back().end, task.end);
  }
  for (const RankExchange& exchange : first.exchanges) {
    const program::TaskTime& time = times[exchange.task];
    const double seconds = time.end - time.begin;
    if (!(seconds > 0)) continue;
    double hidden = 0;
    for (auto span = std::ranges::upper_bound(spans, time.begin, {}, &program::TaskTime::end);
         span != spans.end() && span->begin < time.end; ++span)
      hidden += std::min(span->end, time.end) - std::max(span->begin, time.begin);
    shares[exchange.node.value] = std::clamp(1 - hidden / seconds, 0.0, 1.0);
  }
  return shares;
}

}  // namespace weft::search
