// weft/planner/search/rewrite/refusals.h -- why matches of rules were not applied.
//
//   hoist_relu        encoder.3.hidden                  the cost would rise by 2.1 us
//   merge_products    encoder.3.k, encoder.3.v          already rewritten by merge_products
//   merge_products    decoder.q, decoder.k              guard: size(v, n) <= 4096 does not hold: ..
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/rewrite/trail.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

// Matches of a rule's structure that its guard, a type or an index rejected.
std::vector<Refusal> near_misses(const rule::Draft& draft, const RuleBook& rules,
                                 std::span<const std::string> names);

// Explore matches in `start` that the search did not apply. REQUIRES: `bench` is at the search's
// result.
std::vector<Refusal> matches_not_taken(const plan::Graph& start, Workbench& bench);

}  // namespace weft::search
