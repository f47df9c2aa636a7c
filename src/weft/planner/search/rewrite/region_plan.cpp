#include "weft/planner/search/rewrite/region_plan.h"

#include "weft/planner/search/rewrite/backtracking.h"
#include "weft/planner/search/rewrite/refusals.h"
#include "weft/planner/search/rewrite/relaxed_search.h"

namespace weft::search {
namespace {

// Descent has searched deep already, so a shallow search around the start is enough.
constexpr std::int64_t kPops = 16;

void search(Workbench& bench, double alpha) {
  relaxed_search(bench);
  if (bench.spent()) return;
  const std::vector<rule::Match> descended = bench.path();
  const Price lowest = bench.price();
  bench.go_to({});
  backtrack(bench, lowest, {alpha, kPops});
  if (!bench.price().is_below(lowest)) {
    bench.go_to(descended);
  } else {
    relaxed_search(bench);
  }
}

}  // namespace

RegionPlan plan_region(const plan::Graph& region, const RuleBook& rules, const Pricing& pricing,
                       const Limits& limits, double alpha, bool keep_refusals, Counts& counts) {
  Workbench bench(region, rules, pricing, limits);
  search(bench, alpha);
  RegionPlan found;
  found.stopped = bench.spent().value_or(Stopped::saturated);
  found.seconds_before = bench.price_at_start().seconds;
  found.seconds_after = bench.price().seconds;
  found.trail = bench.trail();
  found.plan = bench.draft().finish();
  if (keep_refusals) found.refusals = matches_not_taken(region, bench);

  counts += bench.counts;
  return found;
}

}  // namespace weft::search
