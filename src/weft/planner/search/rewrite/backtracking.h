// weft/planner/search/rewrite/backtracking.h -- best-first search over whole plans, as TASO does it (SOSP 2019).
//
//   plans by price     take the cheapest; apply every rule at every match; a plan that was not seen
//     0.91 ms  a       yet and costs less than alpha times the best one joins the others
//     0.94 ms  b ──▶ c, d, e
//
// The optimizer runs it on regions, after its own descent; on a whole plan it is the peer that the optimizer
// is measured against.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

struct BacktrackingOptions {
  double alpha = 1.05;
  std::int64_t pops = 100;  // plans taken
};

// From where the bench stands, to the cheapest plan found. `best` is a price already known: plans dearer
// than alpha times that are not followed, and when nothing is below it the bench stays where it is. True when
// it ran out of plans rather than pops.
bool backtrack(Workbench& bench, const Price& best, const BacktrackingOptions& options);

// The whole plan at once.
Result<Rewritten> optimize_by_backtracking(const plan::Graph& graph, std::span<const rule::Rule> rules,
                                           const Pricing& pricing, const BacktrackingOptions& options = {});

}  // namespace weft::search
