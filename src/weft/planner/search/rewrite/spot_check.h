// weft/planner/search/rewrite/spot_check.h -- test a cached plan against the region it is for.
//
//   region   y0 = contract(x0, add(p0, p1))     both are shrunk (distribute/shrink.h) and run once over
//   plan     y0 = contract(x0, sub(p0, p1))     the prime field on the same random values: they differ
//
// This is a cheap test, not a proof. The cache is trusted because only the user can write to it
// (plan_cache.h); the test finds entries that are wrong for other reasons. It is skipped if neither
// the plans nor shrunk ones can run quickly.
#pragma once
#include <cstdint>

#include "weft/plan/graph/graph.h"

namespace weft::search {

enum class SpotCheck : std::uint8_t { agree, differ, not_run };

// REQUIRES: the plan fits the region (region.h).
SpotCheck spot_check(const plan::Graph& plan, const plan::Graph& region);

}  // namespace weft::search
