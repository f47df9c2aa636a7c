// weft/planner/step/plan_in_time.h -- the plan of a TRAIN whose steps are cut in time.
//
//   distribution = 'stage=2: stage; data=2: slice b; micro=4; schedule 1f1b'     as it says
//   micro_batches = 4                                                            of what is chosen else
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/asked_in_time.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

// The same with a mesh: where only micro-batches are asked for, the one that the search finds for whole batches; of
// one rank, none. Fails where it is of another number of ranks.
Result<distribute::Distribution> complete_in_time(const Knowledge& state, const Observer* context,
                                                  const Prepared& prepared, distribute::Distribution asked);

// `asked`: as above. REQUIRES: the statement trains.
Result<search::Choice> plan_in_time(const Knowledge& state, const Observer* context, const Prepared& prepared,
                                    distribute::Distribution asked);

}  // namespace weft::planner
