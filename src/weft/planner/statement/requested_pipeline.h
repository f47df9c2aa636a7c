// weft/planner/statement/requested_pipeline.h -- what settings say about the distribution and pipelining.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// Settings that constrain the distribution.
search::Asked asked_of(const Settings& settings);

// The stages and micro-batches that the settings ask for, if any. With only micro_batches, the mesh
// is still open. Fails, at the statement `at`, if settings contradict one another or cannot be
// combined.
Result<std::optional<distribute::Distribution>> requested_pipeline(const Settings& settings, Span at = {});

// Number of shares of the batch over which batch norms compute separate statistics, so that they do
// not depend on other micro-batches.
Result<std::int64_t> norm_shares_of(const Settings& settings, const plan::Graph& forward, std::int64_t ranks);

}  // namespace weft::planner
