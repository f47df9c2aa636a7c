// weft/app/session/plan_in_time.h -- the plan of a TRAIN whose steps are cut in time.
//
//   distribution = 'stage=2: stage; data=2: slice b; micro=4; schedule 1f1b'     as it says
//   micro_batches = 4                                                            of what is chosen else
//
// Included by app/session and app/command only.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/app/session/prepare.h"
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/planner/search/optimize.h"

namespace weft::session {

// How settings cut steps in time; none: not at all. The mesh is not known yet where they say micro_batches and no
// distribution. Fails, `at` the statement, where the two contradict one another or other settings do not go with them.
Result<std::optional<distribute::Distribution>> asked_in_time(const Settings& settings, Span at = {});

// Of a model whose norms must not ask other micro-batches: the shares of the batch that each takes its statistics
// from.
Result<std::int64_t> norm_shares_in_time(const Settings& settings, const plan::Graph& forward,
                                         std::int64_t ranks);

// The same with a mesh: where only micro-batches are asked for, the one that the search finds for whole batches; of
// one rank, none. Fails where it is of another number of ranks.
Result<distribute::Distribution> complete_in_time(const Session::State& state, const Context* context,
                                                  const Prepared& prepared, distribute::Distribution asked);

// `asked`: as above. REQUIRES: the statement trains.
Result<search::Choice> plan_in_time(const Session::State& state, const Context* context,
                                    const Prepared& prepared, distribute::Distribution asked);

}  // namespace weft::session
