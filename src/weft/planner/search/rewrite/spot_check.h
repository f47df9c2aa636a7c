// weft/planner/search/rewrite/spot_check.h -- a plan that was read from a disk, run beside the region it is for.
//
//   region   y0 = contract(x0, add(p0, p1))     both made small (distribute/shrink.h) and run once over the
//   plan     y0 = contract(x0, sub(p0, p1))     prime field on the same random values: they differ
//
// Cheap, and no proof: the plan is trusted because nobody else can have written it (plan_cache.h). This finds
// the entry that some other mistake left there. Where neither the plans as they are nor small ones can be run
// in a moment, nothing is said.
#pragma once
#include <cstdint>

#include "weft/plan/graph/graph.h"

namespace weft::search {

enum class SpotCheck : std::uint8_t { agree, differ, not_run };

// REQUIRES: the plan fits the region (region.h)
SpotCheck spot_check(const plan::Graph& plan, const plan::Graph& region);

}  // namespace weft::search
