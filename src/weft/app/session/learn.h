// weft/app/session/learn.h -- TRAIN and INFER: combines plans, data and weights.
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

// Whether measurements are saved for later plans. `others` is the share of the processors that
// other processes used meanwhile. Adds a warning with the reason if not.
bool is_remembered(const Session::State& state, const Settings& settings, double others);

struct RankStart {
  std::int64_t held_bytes = 0;                // part of the memory limit already in use
  std::span<const std::uint32_t> turns = {};  // see program/tasks/compile.h
  bool gives_way = false;                     // low priority regardless of settings
};

// Compiles a plan for this machine and starts a rank.
Result<std::unique_ptr<exec::Rank>> start_rank(plan::Graph graph, const Prepared& prepared,
                                               const RankStart& how = {});

// A model's results on data that it is not trained on.
struct Score {
  std::int64_t examples = 0;
  std::optional<double> loss;  // if the model's first output is a scalar
  std::optional<double>
      accuracy;  // if the model has a cross-entropy: how often the largest logit matches the label
  std::string unproven = {};  // why the plan was not proven; empty: it was
  // On a GPU: seconds from the first weight's transfer to the first batch's results.
  std::optional<double> first_answer = std::nullopt;
};

// Adds the logits and labels of the first cross-entropy as outputs, to count correct answers.
// Returns false if no cross-entropy is suitable.
inline constexpr std::string_view kLogits = "(logits)", kLabels = "(labels)";  // not valid names in a model
bool add_cross_entropy_outputs(plan::Graph& graph);

// The name and size of the batch index.
Result<language::SizeOverride> batch_size(const plan::Graph& graph);

// A proven inference plan, on a rank that needs its weights.
struct InferencePlan {
  std::unique_ptr<exec::Rank> rank;
  std::string unproven;             // why it is not proven; empty: it is
  std::optional<plan::Graph> once;  // computed once from weights alone: see run/fold_weights.h
  run::Tensors computed = {};       // its results, until the rank has them
};
Result<InferencePlan> start_inference(const Session::State& state, const Prepared& prepared,
                                      plan::Graph graph);
// On a GPU the transfer may overlap the next step: `weights` must stay alive until that step ends.
Status give_weights(InferencePlan& asked, const Prepared& prepared, const run::Weights& weights);

// Evaluates a model on the test examples of a feed. Plans are built once and reused.
class Scorer {
 public:
  // REQUIRES: all arguments outlive it.
  Scorer(const Session::State& state, const Context& context, const Prepared& prepared, const run::Feed& feed)
      : state_(state), context_(context), prepared_(prepared), feed_(feed) {}

  // Called after each batch with the rank and the number of examples in the batch.
  using OnBatch = std::function<Status(const exec::Rank& rank, std::int64_t examples)>;
  Result<Score> score(const run::Weights& weights, const OnBatch& on_batch = {});

 private:
  struct Part {
    std::int64_t batch = 0;
    bool has_loss = false, has_answers = false;
    InferencePlan plan;
  };
  Result<Part*> part_for(std::int64_t left);

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const run::Feed& feed_;
  std::vector<Part> parts_;  // for full batches, and for a smaller last batch
};

}  // namespace weft::session
