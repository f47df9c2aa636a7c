// weft/session/learn.h -- TRAIN and INFER: plans, data and weights brought together.
//
// Included by the files of session/ only.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/exec/rank.h"
#include "weft/language/bind.h"
#include "weft/run/feed.h"
#include "weft/run/local_ranks.h"
#include "weft/session/settings.h"
#include "weft/session/state.h"
#include "weft/train/training_plan.h"

namespace weft::session {

// What TRAIN, INFER and EXPLAIN say about a model, made definite.
struct Request {
  const language::syntax::Run* run = nullptr;
  Settings settings;
  std::vector<language::SizeOverride> sizes;
  int threads = 1;         // of all ranks together
  std::int32_t ranks = 1;  // of this machine
};

// Checks names and settings, and that the statement is one for this machine.
Result<Request> read_request(const Session::State& state, const language::syntax::Run& run);

// The model bound as the request says, in either mode.
Result<language::BoundModel> bind_request(const Session::State& state, const Context& context,
                                          const Request& request, language::Mode mode,
                                          std::optional<language::SizeOverride> batch = {});

// How the ranks of a request are started: threads are shared out among them.
run::LocalRanksOptions local_ranks_of(const Request& request);

// Whether ranks of this machine move bytes beside computing: as the setting says, else where that takes no
// processor from a worker.
bool overlaps(const Settings& settings, std::int64_t ranks, int workers);

// Compiles a plan for this machine and starts a rank.
Result<std::unique_ptr<exec::Rank>> start_rank(plan::Graph graph, const Request& request);

// How well a model does on data that it is only asked about.
struct Score {
  std::int64_t examples = 0;
  double loss = 0;
  std::optional<double>
      accuracy;  // where the model has a cross-entropy: how often the largest logit is the label's
};

Result<Score> score(const Session::State& state, const Context& context, const Request& request,
                    const run::Feed& feed, const run::Weights& weights);

}  // namespace weft::session
