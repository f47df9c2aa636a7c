// weft/planner/search/rewrite/region_plan.h -- the plan found for a region, how it was found, and both as text for the cache.
//
//   stopped   saturated
//   seconds   0x1.5p-16   0x1.1p-16
//   step      merge_products   -0x1p-18   n3   n4
//   plan region
//   ..
//
// Tabs between fields; numbers in hexadecimal, so that what is read is what was written to the last bit.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/planner/search/rewrite/pricing.h"
#include "weft/planner/search/rewrite/region.h"
#include "weft/planner/search/rewrite/rule_book.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

struct RegionPlan {
  plan::Graph plan;
  double seconds_before = 0, seconds_after = 0;
  std::vector<Step> trail;
  Stopped stopped = Stopped::saturated;
  std::vector<Refusal> refusals = {};  // where they were asked for; not part of the text
};

// Relaxed descent, then backtracking from the start, then descent from what that found.
RegionPlan plan_region(const plan::Graph& region, const RuleBook& rules, const Pricing& pricing,
                       const Limits& limits, double alpha, bool keep_refusals, Counts& counts);

std::string print(const RegionPlan& plan);
// Nothing when the text is not such a plan.
std::optional<RegionPlan> parse_region_plan(std::string_view text);

}  // namespace weft::search
