// weft/planner/search/rewrite/shared_nodes.h -- what a plan computes twice.
//
// A draft holds equal nodes once, so a plan that goes through one gets cheaper before any rule is tried. That
// belongs to the account as well: a step without a rule.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/plan/graph/graph.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/draft.h"

namespace weft::search {

// The nodes of `graph` that run and that its draft does without; nothing when there are none. `priced` counts
// calls of the cost model.
std::optional<Step> share_equal_nodes(const plan::Graph& graph, const rule::Draft& draft,
                                      const Pricing& pricing, std::int64_t& priced);

}  // namespace weft::search
