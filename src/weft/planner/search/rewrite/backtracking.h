// weft/planner/search/rewrite/backtracking.h -- best-first search over whole plans, as in TASO (SOSP 2019).
//
//   plans by cost      pop the cheapest; apply every rule at every match; push each new plan
//     0.91 ms  a       that costs less than alpha times the best one
//     0.94 ms  b ──▶ c, d, e
//
// The optimizer runs it on regions, after its own descent. On a whole plan it is the baseline that
// the optimizer is compared with.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

struct BacktrackingOptions {
  double alpha = 1.05;
  std::int64_t pops = 100;  // plans popped
};

// Searches from the bench's current plan and moves it to the cheapest plan found. `best` is a known
// cost: plans above alpha times it are not expanded, and if no plan is below it the bench does not
// move. Returns true if it ran out of plans before pops.
bool backtrack(Workbench& bench, const Price& best, const BacktrackingOptions& options);

// Searches the whole plan at once.
Result<Rewritten> optimize_by_backtracking(const plan::Graph& graph, std::span<const rule::Rule> rules,
                                           const Pricing& pricing, const BacktrackingOptions& options = {});

}  // namespace weft::search
