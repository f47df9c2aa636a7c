// weft/planner/step/plan_pipeline.h -- the plan of a TRAIN with stages or micro-batches.
//
//   distribution = 'stage=2: stage; data=2: slice b; micro=4; schedule 1f1b'     as given
//   micro_batches = 4                                                            the rest is searched
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/statement/requested_pipeline.h"

namespace weft::planner {

// Adds a mesh to `asked` if only micro-batches are given: the one that the search finds for whole
// batches, or none for one rank. Fails if the number of ranks does not match.
Result<distribute::Distribution> complete_pipeline(const Knowledge& state, const Observer* context,
                                                   const Prepared& prepared, distribute::Distribution asked);

// `asked`: as above. REQUIRES: the statement trains.
Result<search::Choice> plan_pipeline(const Knowledge& state, const Observer* context,
                                     const Prepared& prepared, distribute::Distribution asked);

}  // namespace weft::planner
