// weft/app/session/explain_in_time.h -- EXPLAIN of a plan whose step is cut in stages and micro-batches.
//
//   many devices                    the quicker of the best plan without stages and the best in time
//   distribution = '.. stage ..'    is priced as it is, and ranks of this machine run it with ANALYZE
//   micro_batches = 4               of the distribution that is chosen for whole batches
//
// Included by app/session and app/command only.
#pragma once
#include <optional>

#include "weft/app/session/explain_distributed.h"

namespace weft::session {

// What settings cut in time; `asked` as asked_in_time gives it. REQUIRES: the statement trains.
Answer explain_asked_in_time(const Session::State& state, const Context& context, const Prepared& prepared,
                             explain::DistributedExplanation about, const ExplainOptions& options,
                             const distribute::Distribution& asked);

// What they do not. Nothing where the plan is one without stages and micro-batches: explain_distributed goes on
// then. `untimed` is what was found of such plans where it was looked for; stages are looked for beside it.
Result<std::optional<std::string>> explain_in_time(const Session::State& state, const Context& context,
                                                   const Prepared& prepared,
                                                   explain::DistributedExplanation about,
                                                   const ExplainOptions& options,
                                                   std::optional<Result<search::Choice>>& untimed);

}  // namespace weft::session
