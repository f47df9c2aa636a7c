// weft/planner/settings/settings.h -- settings: SET changes them, WITH (...) for one statement.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/language/syntax.h"
#include "weft/parallel/train/recompute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/cluster/stack.h"
#include "weft/planner/search/codec/codecs.h"
#include "weft/runtime/measure/job_network.h"
#include "weft/runtime/run/schedule.h"

namespace weft::planner {

// How TRAIN and INFER run on this machine.
struct RunOptions {
  std::int64_t threads = 0;     // 0: one per processor
  std::int64_t seed = 0;        // of initial values, data order and dropout
  std::int64_t holdout = 0;     // rows, or bytes of a text, at the end of the data, not used for training
  bool holdout_drawn = false;   // the holdout is a random sample by seed
  std::int64_t test_every = 0;  // steps between tests on the holdout; 0: one at the end
  std::string log;              // file for the loss of every step
  double temperature = 0;       // of GENERATE; 0: the most likely token
  std::int64_t top_k = 0;       // of GENERATE: draws from this many most likely tokens; 0: from all
  double top_p = 1;       // of GENERATE: draws from the most likely tokens with this probability together
  std::string stop;       // text at which GENERATE ends; empty: none
  std::string tokenizer;  // file of GENERATE's tokenizer; empty: tokens are bytes
  run::ScheduleKind schedule = run::ScheduleKind::constant;  // of the learning rate
  std::int64_t warmup = 0;                                   // steps in which the learning rate rises
  std::int64_t schedule_steps = 0;            // from the model's first step; 0: those of the statement
  double schedule_end = 0;                    // share of the learning rate left at the end
  std::int64_t schedule_every = 0;            // of `step`: steps between decays; 0: a third of them
  double schedule_factor = 0.1;               // of `step`: factor of each decay
  bool restart = false;                       // from new initial values, ignoring existing weights
  std::string checkpoint;                     // file to save to during training
  std::int64_t checkpoint_every = 0;          // steps; 0: only at the end
  std::string checkpoint_best;                // file for the best weights
  std::int64_t check_every = 100;             // steps between comparisons of replicas; 0: never
  double outer_rate = 1, outer_momentum = 0;  // outer optimizer, if sync_every > 1
  std::int64_t copy_every = 0;                // steps between in-memory checkpoints of LOCAL ranks; 0: never
  std::int64_t replan_every = 0;              // steps between checks of the ranks' speeds; 0: never
  double wall_time = 0;                       // seconds after which TRAIN saves and ends; 0: no limit
  std::optional<bool> resume;                 // from the checkpoint; none: if a launcher restarted the ranks
  std::int64_t restarts = 0;                  // of failed LOCAL ranks, from the last checkpoint
  bool follow_plan = true;                    // reuse the plan that the weights were trained with
  std::string transport = "automatic";        // between the ranks of LOCAL n
  std::optional<measure::Network> network;    // between hosts of JOB; none: measured
  std::string algorithm;         // for collectives (exchange/requested_algorithms.h); empty: by cost
  bool synthesize = false;       // whether synthesized collective algorithms compete with shipped ones
  std::optional<bool> remember;  // whether EXPLAIN ANALYZE keeps its times; none: unless disturbed
  bool gives_way = false;        // on a GPU: to high-priority work
  bool unit_by_unit = false;     // on a GPU: serializes units to find one that fails
  double device_timeout = 300;   // seconds without progress after which a GPU counts as lost; 0: never
  std::optional<bool> overlap;   // of communication; none: if a processor is free
};

struct Settings {
  double memory_limit = 0;  // bytes per device; 0: all it has, less the reserve
  // Share of a device's memory that plans leave free; none: the stack's, or kMemoryReserve.
  std::optional<double> memory_reserve = std::nullopt;
  std::int64_t plan_limit = 1'000'000;
  plan::DType precision = plan::DType::f32;  // compute dtype of training.precision
  std::string device;  // or cluster that EXPLAIN plans for without ON; empty: a core of this machine
  std::string stack;   // software that trains on the cluster; empty: Weft
  cluster::ProductFormat stack_products = cluster::ProductFormat::plan;  // in which it multiplies by weights
  std::string distribution;        // to use instead of a search; empty: search
  std::int64_t micro_batches = 1;  // per step of TRAIN
  // Recomputation in the backward pass. None: as in the distribution, or else as memory requires.
  std::optional<train::Recompute> recompute = std::nullopt;
  std::int64_t search_limit = 1000;  // limit on distributions that the search estimates
  double seconds = 0;                // time limit of planning; 0: none
  std::optional<bool> rules =
      std::nullopt;  // whether rules rewrite plans; none: if a step gets faster by a margin
  // Whether losses over classes hold only a tile of logits. None: if logits are large and it pays.
  std::optional<bool> tiled_loss = std::nullopt;
  std::vector<std::string> optimizer_off;  // disabled planner stages
  // Set by fit_memory(), not by users. `spills`: what exceeds memory_limit goes to a file.
  // `untiled`: there is no memory for the requested tiles.
  bool spills = false, untiled = false;
  // Bucket size for gradients. 0: the fastest; none: one call per gradient.
  std::optional<double> bucket_bytes = 0;
  // In-flight window of all-reduces per axis, in bytes. 0: the fastest; none: one call each.
  std::optional<double> credit = 0;
  // Tiles per collective. 0: the fastest; none: no tiling.
  std::optional<std::int64_t> tiles = 0;
  search::Codecs codecs = {};  // allowed codecs for communication
  // Whether ranks of a stage that hold the same activation send a slice each. None: if faster.
  std::optional<bool> slice_sends = std::nullopt;
  // Share of the step time within which the simplest plan is chosen; none: by the uncertainty of
  // the prediction.
  std::optional<double> simpler_within = std::nullopt;
  // Local steps of ranks that slice the batch between averages of their parameters; 1: none.
  std::int64_t sync_every = 1;
  std::int64_t servers = 0;  // summation servers: spare hosts that may be used; processes if LOCAL
  std::int64_t delay = 0;    // steps between computing and applying a gradient: 0 or 1
  bool local_norms = false;  // batch norms use statistics of one device's share of a batch
  bool prove = true;         // prove plans for several ranks before they are shown or run
  train::TrainingOptions training;
  RunOptions running;
};

// What depends on a setting; stated in every row.
enum class Decides : std::uint8_t {
  nothing = 0,
  model = 1,  // the one-device plan: a written plan includes the setting
  plan = 2,   // its distribution: if it differs, trained weights are planned again
  host = 4,   // may differ between hosts of a job: ranks do not compare it
};
constexpr Decides operator|(Decides a, Decides b) {
  return static_cast<Decides>(static_cast<int>(a) | static_cast<int>(b));
}

struct SettingSpec {
  std::string_view name;
  std::string_view summary;
  Decides decides;
  Status (*set)(Settings& settings, const language::syntax::Value& value);
  std::string (*show)(const Settings& settings);

  bool does_decide(Decides what) const { return (static_cast<int>(decides) & static_cast<int>(what)) != 0; }
};

std::span<const SettingSpec> setting_specs();
std::vector<std::string_view> setting_names();
// "yield" for "gives_way", its former name; other names are returned unchanged.
std::string_view current_name(std::string_view name);

struct RenamedWord {
  std::string before, now;
};
// The former words in `name = value`: of settings, planner stages and distributions.
std::vector<RenamedWord> renamed_words(std::string_view name, const language::syntax::Value& value);

// "beta1 = 0.8", "precision = bf16": settings that differ from the default, if `takes` accepts
// them.
std::vector<std::string> print_changed(const Settings& settings,
                                       const std::function<bool(const SettingSpec&)>& takes);

// Fails, at its position, on an unknown name or a value of the wrong type; then `settings` is
// unchanged.
Status apply(Settings& settings, const language::syntax::Name& name, const language::syntax::Value& value);

// Applies a WITH list: settings change `settings`, all other names must be sizes of the model.
Result<std::vector<language::SizeOverride>> apply_list(Settings& settings,
                                                       std::span<const language::syntax::Setting> list,
                                                       std::span<const std::string_view> sizes,
                                                       std::string_view model);

}  // namespace weft::planner
