// weft/planner/search/rewrite/rewrite_plan.h -- the cheapest plan on one device reachable by proven rules.
//
//   plan ──cut──▶ regions ──search──▶ better regions ──join──▶ plan ──▶ again, until no region improves
//                    │  ▲
//                  plan cache: each region is planned once, in this run or an earlier one
//
// The plan is cut where no rule matches across (region.h). A region is searched by relaxed descent,
// then by backtracking from its start (relaxed_search.h, backtracking.h). Equal regions, such as
// the layers of an encoder, are searched once. Improved regions may enable matches across old cuts,
// so the next round cuts elsewhere.
//
// The same plan, rules, costs and budget give the same plan, whatever the cache contains; only a
// limit in seconds can change that.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

class PlanCache;

struct Budget {
  std::int64_t rewrites = 6000;                              // tried per region
  std::int64_t nodes = 200'000;                              // made per region, including dead ones
  double seconds = std::numeric_limits<double>::infinity();  // for the whole plan
  double alpha = 1.2;  // expand regions up to this ratio to the best cost
};

struct RewriteOptions {
  Budget budget;
  PlanCache* cache = nullptr;  // null: no cache
  bool keep_refusals = false;  // for `weft rules why`; does not read the cache
};

struct Rewritten {
  plan::Graph plan;
  double seconds_before = 0, seconds_after = 0;
  std::vector<Step> trail;
  Stopped stopped = Stopped::saturated;
  Counts counts;
  std::vector<Refusal> refusals;
};

Result<Rewritten> rewrite_plan(const plan::Graph& graph, std::span<const rule::Rule> rules,
                               const Pricing& pricing, const RewriteOptions& options = {});

}  // namespace weft::search
