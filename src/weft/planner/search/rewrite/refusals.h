// weft/planner/search/rewrite/refusals.h -- why the matches that a plan had were not taken.
//
//   hoist_relu        encoder.3.hidden                  the cost would rise by 2.1 us
//   merge_products    encoder.3.k, encoder.3.v          taken first by merge_products
//   merge_products    decoder.q, decoder.k              guard: size(v, n) <= 4096 does not hold: ..
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/rewrite/trail.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

// Where a rule's structure was found in the plan but its guard, a type or an index declined.
std::vector<Refusal> near_misses(const rule::Draft& draft, const RuleBook& rules,
                                 std::span<const std::string> names);

// Of the explore matches in `start`, a search of which left the bench where it stands.
std::vector<Refusal> matches_not_taken(const plan::Graph& start, Workbench& bench);

}  // namespace weft::search
