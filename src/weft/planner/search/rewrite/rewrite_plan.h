// weft/planner/search/rewrite/rewrite_plan.h -- the cheapest plan that proven rules lead to, on one device.
//
//   plan ──cut──▶ regions ──search──▶ better regions ──join──▶ plan ──▶ again, until no region gets better
//                    │  ▲
//                  plan cache: a region is planned once, whoever asks, in this run or another
//
// The plan is cut where no rule reaches across (region.h). A region is searched by relaxed descent,
// then by backtracking from where it began (relaxed_search.h, backtracking.h); equal regions, such as
// the layers of an encoder, once. Better regions may make a rule reach across where none did: the next
// round cuts elsewhere.
//
// The same plan, rules, prices and budget give the same plan, whatever the cache holds; only a limit of
// seconds can change that.
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
  std::int64_t rewrites = 6000;                              // tried in one region
  std::int64_t nodes = 200'000;                              // made in one region, dead ones included
  double seconds = std::numeric_limits<double>::infinity();  // for the whole plan
  double alpha = 1.2;  // a region this much dearer than the best may still lead to a better one
};

struct RewriteOptions {
  Budget budget;
  PlanCache* cache = nullptr;  // null: each region is planned anew
  bool keep_refusals = false;  // for `weft rules why`; such a run reads nothing from the cache
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
