// weft/planner/search/rewrite/region_plan.h -- the plan found for a region and its trail; also as text.
//
//   stopped   saturated
//   seconds   0x1.5p-16   0x1.1p-16
//   step      merge_products   -0x1p-18   n3   n4
//   plan region
//   ..
//
// The cache stores this text. Fields are separated by tabs, and numbers are hexadecimal so that
// they are read back exactly.
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
  std::vector<Refusal> refusals = {};  // if requested; not part of the text
};

// Relaxed descent, then backtracking from the start, then descent from its result.
RegionPlan plan_region(const plan::Graph& region, const RuleBook& rules, const Pricing& pricing,
                       const Limits& limits, double alpha, bool keep_refusals, Counts& counts);

std::string print(const RegionPlan& plan);
// Nothing if the text is not a region plan.
std::optional<RegionPlan> parse_region_plan(std::string_view text);

}  // namespace weft::search
