#include "weft/planner/search/rewrite/backtracking.h"

#include <algorithm>
#include <queue>
#include <unordered_set>
#include <vector>

#include "weft/planner/search/rewrite/shared_nodes.h"

namespace weft::search {
namespace {

// A plan, stored as its last move and the previous plan.
struct FoundChange {
  rule::Match move;
  std::size_t before;
};

constexpr std::size_t kStart = 0;

std::vector<rule::Match> way_to(std::size_t plan, std::span<const FoundChange> found,
                                std::span<const rule::Match> start) {
  std::vector<rule::Match> way;
  for (; plan != kStart; plan = found[plan].before) way.push_back(found[plan].move);
  way.insert(way.end(), start.rbegin(), start.rend());
  std::ranges::reverse(way);
  return way;
}

struct Waiting {
  double seconds;
  std::size_t plan;

  // Cheapest on top; of equals, the one found first.
  bool operator<(const Waiting& other) const {
    return seconds != other.seconds ? seconds > other.seconds : plan > other.plan;
  }
};

}  // namespace

bool backtrack(Workbench& bench, const Price& known, const BacktrackingOptions& options) {
  const std::vector<rule::Match> start = bench.path();
  std::vector<FoundChange> found = {{{}, kStart}};
  std::unordered_set<std::uint64_t> seen = {bench.ledger().fingerprint()};
  std::priority_queue<Waiting> queue;
  queue.push({bench.price().seconds, kStart});
  Price best = known;
  std::size_t best_plan = kStart;

  std::int64_t pops = 0;
  for (; !queue.empty() && pops < options.pops && !bench.spent(); ++pops) {
    const Waiting next = queue.top();
    queue.pop();
    if (next.seconds > options.alpha * best.seconds && next.plan != kStart) continue;
    if (!bench.go_to(way_to(next.plan, found, start))) continue;
    for (rule::Match& match : bench.matches()) {
      if (bench.spent()) break;
      if (!bench.take(match)) continue;
      const Price price = bench.price();
      const bool is_new = seen.insert(bench.ledger().fingerprint()).second;
      bench.take_back();
      if (!is_new || price.seconds > options.alpha * best.seconds) continue;
      ++bench.counts.plans;
      found.push_back({std::move(match), next.plan});
      queue.push({price.seconds, found.size() - 1});
      if (!price.is_below(best)) continue;
      best = price;
      best_plan = found.size() - 1;
    }
  }
  bench.go_to(way_to(best_plan, found, start));
  return queue.empty() && !bench.spent();
}

Result<Rewritten> optimize_by_backtracking(const plan::Graph& graph, std::span<const rule::Rule> rules,
                                           const Pricing& pricing, const BacktrackingOptions& options) {
  const RuleBook book(rules);
  Workbench bench(graph, book, pricing, {});
  const bool saturated = backtrack(bench, bench.price(), options);
  Rewritten result;
  result.plan = bench.draft().finish();
  result.seconds_before = bench.price_at_start().seconds;
  result.seconds_after = bench.price().seconds;
  result.stopped = saturated ? Stopped::saturated : Stopped::rewrite_limit;
  result.counts = bench.counts;
  result.trail = bench.trail();
  const rule::Draft start(graph);
  if (std::optional<Step> shared = share_equal_nodes(graph, start, pricing, result.counts.priced)) {
    result.seconds_before -= shared->change;
    result.trail.insert(result.trail.begin(), std::move(*shared));
  }
  return result;
}

}  // namespace weft::search
