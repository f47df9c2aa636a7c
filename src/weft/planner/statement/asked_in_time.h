// weft/planner/statement/asked_in_time.h -- what settings ask of how a plan is spread, and of stages and micro-batches.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// What the settings require of a distribution.
search::Asked asked_of(const Settings& settings);

// How settings cut steps in time; none: not at all. The mesh is not known yet where they say micro_batches and no
// distribution. Fails, `at` the statement, where the two contradict one another or other settings do not go with them.
Result<std::optional<distribute::Distribution>> asked_in_time(const Settings& settings, Span at = {});

// Of a model whose norms must not ask other micro-batches: the shares of the batch that each takes its statistics
// from.
Result<std::int64_t> norm_shares_in_time(const Settings& settings, const plan::Graph& forward,
                                         std::int64_t ranks);

}  // namespace weft::planner
