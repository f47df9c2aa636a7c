// weft/planner/search/rewrite/shared_nodes.h -- account for duplicate nodes that a draft merges.
//
// A draft merges equal nodes, so a plan gets cheaper before any rule applies. The trail records
// this as a step without a rule.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/plan/graph/graph.h"
#include "weft/planner/search/rewrite/pricing.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/draft.h"

namespace weft::search {

// A step for the nodes of `graph` that run but are merged in `draft`; nothing if there are none.
// `priced` counts calls of the cost model.
std::optional<Step> share_equal_nodes(const plan::Graph& graph, const rule::Draft& draft,
                                      const Pricing& pricing, std::int64_t& priced);

}  // namespace weft::search
