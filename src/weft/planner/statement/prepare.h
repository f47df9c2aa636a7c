// weft/planner/statement/prepare.h -- TRAIN, INFER and EXPLAIN made definite: the one way in.
//
//   TRAIN digits_mlp ON LOCAL 4 WITH (b = 64, optimizer = sgd)
//     names, settings and sizes are read    settings, overrides
//     the target is found                   target        LOCAL 4
//     the model is bound                    sizes         b = 64, p = 64, f = 128, c = 10
//     it is made to learn                   plan          forward, backward, update, on one device
//
// Mistakes are found in this order, whoever asks.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/planner/search/distribution/distribution_space.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/statement/knowledge.h"
#include "weft/planner/statement/observer.h"
#include "weft/planner/target/target.h"
#include "weft/runtime/run/feed.h"

namespace weft::planner {

enum class Purpose : std::uint8_t {
  plan,     // for any cluster: nothing runs
  measure,  // here, unless ON says otherwise
  run       // here and now: with data, on ranks that this machine can start
};

// What was asked, and where it is to run. Copies are whole: code that asks again with other settings changes those.
struct PlanRequest {
  const language::syntax::Run* run = nullptr;
  Settings settings;                              // the session's, with what the statement says
  std::vector<language::SizeOverride> overrides;  // what it says of sizes
  Target target;
  std::int64_t ranks = 1;          // of the target
  search::FixedPart fixed;         // by hints
  std::vector<train::Goal> goals;  // of MINIMIZE

  bool trains() const { return run->task == language::syntax::Task::train; }
};

// A request and the plan of one device that it leads to.
struct Prepared : PlanRequest {
  Prepared() = default;
  explicit Prepared(PlanRequest asked) : PlanRequest(std::move(asked)) {}

  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::vector<language::BoundSize> sizes;
  train::TrainingPlan plan;      // INFER's is a forward pass alone
  std::int64_t norm_shares = 1;  // of the batch, from which batch norms take their statistics

  const PlanRequest& request() const { return *this; }
  std::vector<std::pair<std::string, std::int64_t>> named_sizes() const;
  // Since it began to be prepared.
  double seconds_of_planning() const;
};

// REQUIRES: the statement outlives what is prepared.
Result<Prepared> prepare(const Knowledge& state, const language::syntax::Run& run, Purpose purpose,
                         const std::function<bool()>& interrupted = {});

// The sizes a model declares; fails when there is no such model.
// "gives_way is now called yield", once in a session.
void note_old_name(const Knowledge& state, std::string_view name);
// Of a WITH list, whose entries may be sizes of the model.
void note_old_names(const Knowledge& state, std::span<const language::syntax::Setting> list,
                    std::span<const std::string_view> sizes);

Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model);

// The files of FROM.
std::vector<run::DataFile> data_of(const language::syntax::Run& run);

// What is computed again, by the setting or the distribution. Fails where they contradict one another.
Result<train::Recompute> recompute_of(const Settings& settings);

// A bound model that learns as the statement says.
Result<train::TrainingPlan> make_learning(const Prepared& prepared, plan::Graph forward);

// "d_loss by adam, g_loss by sgd": what MINIMIZE says; empty without it.
std::string print_goals(const Prepared& prepared);

// Fails where this machine cannot run it: on another cluster, on more ranks than can be started.
Status check_runs_here(const Prepared& prepared);

// The model of the statement once more: in either mode, and with these sizes instead of the statement's where
// both name one. Its batch norms take the statistics that the settings say, and rules that come before learning
// have fired.
Result<language::BoundModel> bind_again(const Knowledge& state, const Prepared& prepared, language::Mode mode,
                                        std::span<const language::SizeOverride> sizes = {},
                                        const std::function<bool()>& interrupted = {});

// Which rules those were, and where they fired: found once more, for who wants to tell.
Result<std::vector<search::Step>> first_steps(const Knowledge& state, const Prepared& prepared);

// All of it once more with other sizes.
Result<Prepared> prepare_again(const Knowledge& state, const PlanRequest& request,
                               std::span<const language::SizeOverride> sizes,
                               const std::function<bool()>& interrupted = {});

}  // namespace weft::planner
