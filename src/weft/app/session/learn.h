// weft/app/session/learn.h -- TRAIN and INFER: plans, data and weights brought together.
//
// Included by app/session and app/command only.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/local_ranks.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/run_plan.h"

namespace weft::session {

// Whether what was measured while others had that share of the processors is kept for later plans. If not, a
// warning says why.
bool is_remembered(const Session::State& state, const Settings& settings, double others);

struct RankStart {
  std::int64_t held_bytes = 0;                // of the memory limit, that are taken already
  std::span<const std::uint32_t> turns = {};  // program/tasks/compile.h
  bool gives_way = false;                     // whatever the settings say
};

// Compiles a plan for this machine and starts a rank.
Result<std::unique_ptr<exec::Rank>> start_rank(plan::Graph graph, const Prepared& prepared,
                                               const RankStart& how = {});

// How well a model does on data that it is only asked about.
struct Score {
  std::int64_t examples = 0;
  std::optional<double> loss;  // where the model's first output is a single number
  std::optional<double>
      accuracy;  // where the model has a cross-entropy: how often the largest logit is the label's
  std::string unproven = {};  // why the plan that ran was not proven; empty: it was
  // On a GPU: seconds from where no weight was there to the first batch's answer.
  std::optional<double> first_answer = std::nullopt;
};

// Outputs for what the first cross-entropy compares, so that right answers can be counted. False: none fits.
inline constexpr std::string_view kLogits = "(logits)", kLabels = "(labels)";  // no name of a model's own
bool add_cross_entropy_outputs(plan::Graph& graph);

// The name and size of the index that examples run along.
Result<language::SizeOverride> batch_size(const plan::Graph& graph);

// The plan of what is asked, proven, on a rank that waits for weights.
struct AskedPlan {
  std::unique_ptr<exec::Rank> rank;
  std::string unproven;             // why it is not proven; empty: it is
  std::optional<plan::Graph> once;  // what is made of weights alone, for all batches: see run/fold_weights.h
  run::Tensors computed = {};       // and what that gave, where the rank has it not yet
};
Result<AskedPlan> start_asked(const Session::State& state, const Prepared& prepared, plan::Graph graph);
// On a GPU they are on their way when the next step begins: the weights must stay until it is over.
Status give_weights(AskedPlan& asked, const Prepared& prepared, const run::Weights& weights);

// Asks a model about the examples of a feed that are kept for testing; once made, a plan serves every time.
class Scorer {
 public:
  // REQUIRES: all of them outlive it.
  Scorer(const Session::State& state, const Context& context, const Prepared& prepared, const run::Feed& feed)
      : state_(state), context_(context), prepared_(prepared), feed_(feed) {}

  // Sees the rank after each batch, and how many examples it held.
  using OnBatch = std::function<Status(const exec::Rank& rank, std::int64_t examples)>;
  Result<Score> score(const run::Weights& weights, const OnBatch& on_batch = {});

 private:
  struct Part {
    std::int64_t batch = 0;
    bool has_loss = false, has_answers = false;
    AskedPlan plan;
  };
  Result<Part*> part_for(std::int64_t left);

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const run::Feed& feed_;
  std::vector<Part> parts_;  // of whole batches, and of the last one where it is smaller
};

}  // namespace weft::session
