// weft/planner/statement/prepare.h -- resolve TRAIN, INFER and EXPLAIN statements.
//
//   TRAIN digits_mlp ON LOCAL 4 WITH (b = 64, optimizer = sgd)
//     names, settings and sizes are read    settings, overrides
//     the target is found                   target        LOCAL 4
//     the model is bound                    sizes         b = 64, p = 64, f = 128, c = 10
//     it is differentiated                  plan          forward, backward, update, on one device
//
// Errors are found in this order, for all statements.
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
  plan,     // for any cluster; does not run
  measure,  // on this machine, unless ON names another target
  run       // on this machine, with data, on ranks that can be started here
};

// A statement with its settings and target. Self-contained: copies can be changed to plan variants.
struct PlanRequest {
  const language::syntax::Run* run = nullptr;
  Settings settings;                              // of the session, overridden by the statement
  std::vector<language::SizeOverride> overrides;  // sizes set by the statement
  Target target;
  std::int64_t ranks = 1;          // of the target
  search::FixedPart fixed;         // by hints
  std::vector<train::Goal> goals;  // of MINIMIZE

  bool trains() const { return run->task == language::syntax::Task::train; }
};

// A request and its one-device plan.
struct Prepared : PlanRequest {
  Prepared() = default;
  explicit Prepared(PlanRequest asked) : PlanRequest(std::move(asked)) {}

  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::vector<language::BoundSize> sizes;
  train::TrainingPlan plan;      // for INFER only a forward pass
  std::int64_t norm_shares = 1;  // shares of the batch for the statistics of batch norms

  const PlanRequest& request() const { return *this; }
  std::vector<std::pair<std::string, std::int64_t>> named_sizes() const;
  // Since `began`.
  double seconds_of_planning() const;
};

// REQUIRES: the statement outlives the result.
Result<Prepared> prepare(const Knowledge& state, const language::syntax::Run& run, Purpose purpose,
                         const std::function<bool()>& interrupted = {});

// Notes once per session: "gives_way is now called yield", also for the former words of the value.
void note_old_names(const Knowledge& state, std::string_view name, const language::syntax::Value& value);
// The same for a WITH list, whose other names may be sizes of the model.
void note_old_names(const Knowledge& state, std::span<const language::syntax::Setting> list,
                    std::span<const std::string_view> sizes);

// The sizes that a model declares. Fails if there is no such model.
Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model);

// The files of FROM.
std::vector<run::DataFile> data_of(const language::syntax::Run& run);

// Recomputation from the setting or the distribution. Fails if they contradict one another.
Result<train::Recompute> recompute_of(const Settings& settings);

// The training plan of a bound model, according to the statement.
Result<train::TrainingPlan> make_learning(const Prepared& prepared, plan::Graph forward);

// "d_loss by adam, g_loss by sgd", from MINIMIZE; empty without it.
std::string print_goals(const Prepared& prepared);

// Fails if this machine cannot run it: on another cluster, or with more ranks than can be started.
Status check_runs_here(const Prepared& prepared);

// Binds the statement's model again, in either mode. `sizes` override those of the statement. Batch
// norms use the statistics that the settings say, and the rules before differentiation are applied.
Result<language::BoundModel> bind_again(const Knowledge& state, const Prepared& prepared, language::Mode mode,
                                        std::span<const language::SizeOverride> sizes = {},
                                        const std::function<bool()>& interrupted = {});

// The applied rules before differentiation and where they matched, for display. Recomputes them.
Result<std::vector<search::Step>> first_steps(const Knowledge& state, const Prepared& prepared);

// Prepares the request again with other sizes.
Result<Prepared> prepare_again(const Knowledge& state, const PlanRequest& request,
                               std::span<const language::SizeOverride> sizes,
                               const std::function<bool()>& interrupted = {});

}  // namespace weft::planner
