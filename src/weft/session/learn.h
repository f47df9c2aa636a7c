// weft/session/learn.h -- TRAIN and INFER: plans, data and weights brought together.
//
// Included by the files of session/ only.
#pragma once
#include <memory>
#include <optional>

#include "weft/exec/rank.h"
#include "weft/run/feed.h"
#include "weft/run/local_ranks.h"
#include "weft/session/prepare.h"
#include "weft/sim/step/predict.h"

namespace weft::session {

// How the ranks of a statement are started: threads are shared out among them, and they run the algorithms that
// were priced. Of ranks of several hosts nothing is known here but their number: there the communicator
// chooses, unless algorithms were asked for.
Result<run::LocalRanksOptions> local_ranks_of(const Prepared& prepared, const sim::Prediction& priced);

// Whether ranks of this machine move bytes beside computing: as the setting says, else where that takes no
// processor from a worker.
bool overlaps(const Settings& settings, std::int64_t ranks, int workers);

// Compiles a plan for this machine and starts a rank.
Result<std::unique_ptr<exec::Rank>> start_rank(plan::Graph graph, const Prepared& prepared);

// How well a model does on data that it is only asked about.
struct Score {
  std::int64_t examples = 0;
  double loss = 0;
  std::optional<double>
      accuracy;  // where the model has a cross-entropy: how often the largest logit is the label's
  std::string unproven = {};  // why the plan that ran was not proven; empty: it was
};

Result<Score> score(const Session::State& state, const Context& context, const Prepared& prepared,
                    const run::Feed& feed, const run::Weights& weights);

}  // namespace weft::session
