// weft/app/session/measure_distributed.h -- EXPLAIN ANALYZE of a plan for several ranks: runs the plan.
//
// Included by app/session and app/command only.
#pragma once
#include <memory>
#include <vector>

#include "weft/app/explain/report.h"
#include "weft/app/session/state.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/statement/prepare.h"
#include "weft/program/tasks/timeline.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::session {

struct DistributedMeasurement {
  explain::Measured step;
  // One rank's program and its timeline of the median step.
  struct RankRun {
    std::shared_ptr<const program::Program> program;
    program::Timeline timeline;
  };
  std::vector<RankRun> ranks;
};

// The data to measure on: the given data, or made-up numbers.
Result<std::unique_ptr<run::Feed>> feed_to_measure(const Settings& settings, const language::syntax::Run& run,
                                                   const plan::Graph& graph);
// "4 processes over shared memory"
std::string describe_ranks(const run::LocalRanksOptions& options, bool several_hosts);

// Runs the chosen plan for some steps on this machine, on the given data or on made-up numbers, and
// saves unit times in the statistics. `shown` is the rank whose node times are reported. Fails if
// the cluster is not this machine.
Result<DistributedMeasurement> measure_distributed(const Session::State& state, const Context& context,
                                                   const Prepared& prepared,
                                                   const search::DistributionChoice& choice,
                                                   std::int32_t shown);

}  // namespace weft::session
