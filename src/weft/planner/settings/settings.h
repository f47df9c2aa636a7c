// weft/planner/settings/settings.h -- what SET sets and WITH (...) overrides for one statement.
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
#include "weft/planner/search/codec/codecs.h"
#include "weft/runtime/measure/job_network.h"
#include "weft/runtime/run/schedule.h"

namespace weft::planner {

// How TRAIN and INFER run on this machine.
struct RunOptions {
  std::int64_t threads = 0;     // 0: as many as there are processors
  std::int64_t seed = 0;        // of initial values and the order of the data
  std::int64_t holdout = 0;     // rows, or bytes of a text, at the end of the data that training does not see
  bool holdout_drawn = false;   // the holdout is drawn by the seed, from anywhere
  std::int64_t test_every = 0;  // steps from one test on the holdout to the next; 0: one at the end
  std::string log;              // a file for the loss of every step
  double temperature = 0;       // of GENERATE; 0: what is likeliest
  run::ScheduleKind schedule = run::ScheduleKind::constant;  // of the learning rate
  std::int64_t warmup = 0;                                   // steps in which it climbs
  std::int64_t schedule_steps = 0;    // of the model's first step on; 0: those of the statement
  double schedule_end = 0;            // what is left of it at the end
  std::int64_t schedule_every = 0;    // of `step`: steps; 0: a third of them
  double schedule_factor = 0.1;       // of `step`
  bool restart = false;               // from new initial values, whatever was learned before
  std::string checkpoint;             // a file to save to while training
  std::int64_t checkpoint_every = 0;  // steps; 0: only when training is over
  std::string checkpoint_best;        // a file for the best of them
  std::int64_t check_every = 100;     // steps from one comparison of ranks' copies to the next; 0: none
  double outer_rate = 1, outer_momentum = 0;  // of what averages do to parameters, where ranks learn alone
  std::int64_t copy_every = 0;    // steps from one copy in LOCAL's ranks' own memory to the next; 0: none
  std::int64_t replan_every = 0;  // steps from one look at the ranks' speeds to the next; 0: none
  double wall_time = 0;           // seconds after which TRAIN saves and ends; 0: none
  std::optional<bool> resume;     // from the checkpoint; none: where a launcher started ranks again
  std::int64_t restarts = 0;      // of LOCAL's ranks, from the last checkpoint, when one died
  bool follow_plan = true;        // with which the weights were trained before
  std::string transport = "automatic";      // between the ranks of LOCAL n
  std::optional<measure::Network> network;  // between the hosts of JOB; none: it is measured
  std::string algorithm;    // what their collectives run (exchange/asked_algorithms.h); empty: as priced
  bool synthesize = false;  // whether trees made for the wires compete with the algorithms that ship
  std::optional<bool>
      remember;               // whether EXPLAIN ANALYZE keeps its times; none: where no others disturbed it
  bool gives_way = false;     // on a GPU: to what is urgent there
  bool unit_by_unit = false;  // on a GPU: the next unit when one is done, to find which fails
  double device_timeout =
      300;  // seconds in which nothing gets done on a GPU until it counts as lost; 0: for ever
  std::optional<bool> overlap;  // whether they move while they compute; none: where a processor is free
};

struct Settings {
  double memory_limit = 0;  // bytes a device may use; 0: all it has
  std::int64_t plan_limit = 1'000'000;
  plan::DType precision = plan::DType::f32;  // that the policy computes in: training.precision
  std::string device;        // or a cluster: what EXPLAIN plans for without ON; empty: a core of this machine
  std::string distribution;  // how plans are spread over a cluster; empty: as the search finds
  std::int64_t micro_batches = 1;  // that TRAIN cuts a step's batch into
  // What the backward phase computes again; none: what the distribution says, or else what memory asks for.
  std::optional<train::Recompute> recompute = std::nullopt;
  std::int64_t search_limit = 1000;  // distributions that the search may look at
  double seconds = 0;                // that it may take; 0: as long as it needs
  std::optional<bool> rules =
      std::nullopt;  // whether rules rewrite plans; none: where a step gets faster by a margin
  // Whether losses over classes keep a tile of logits alone; none: where these are large and it pays.
  std::optional<bool> tiled_loss = std::nullopt;
  std::vector<std::string> optimizer_off;  // stages of the optimizer that are left out
  // Found by fit_memory(), nobody sets them: what exceeds memory_limit goes to a file; it has no room for the tiles
  // that were asked for.
  bool spills = false, untiled = false;
  // That gradients travel in; 0: as it is quickest; none: each by itself.
  std::optional<double> bucket_bytes = 0;
  // Bytes of all-reduces under way along an axis; 0: as it is quickest; none: each is one call.
  std::optional<double> credit = 0;
  // That collectives are cut into beside products; 0: as it is quickest; none: they are not.
  std::optional<std::int64_t> tiles = 0;
  search::Codecs codecs = {};  // what may be made small on the wires
  // Whether ranks of a stage that have the same to send send a slice of it each; none: where it is quicker.
  std::optional<bool> slice_sends = std::nullopt;
  // Steps that ranks which slice the batch learn by themselves before they average what they learned; 1: none.
  std::int64_t sync_every = 1;
  std::int64_t servers = 0;  // spare hosts that may add up for ranks; of LOCAL processes that do
  std::int64_t delay = 0;    // steps from making a gradient to applying it: 0 or 1
  bool local_norms = false;  // batch norms take their statistics from one device's share of a batch
  bool prove = true;         // plans for several ranks are proven before they are shown or run
  train::TrainingOptions training;
  RunOptions running;
};

// What else changes with a setting; every row says it.
enum class Decides : std::uint8_t {
  nothing = 0,
  model = 1,  // the plan of one device: a written plan names the setting
  plan = 2,   // how that is spread: weights that were planned otherwise are planned anew
  host = 4,   // hosts of a job may each have their own: ranks do not compare it
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
// "yield" of "gives_way", which was its name before; all other names are as given.
std::string_view current_name(std::string_view name);

// "beta1 = 0.8", "precision = bf16": those that are not as without SET, where `takes` them.
std::vector<std::string> print_changed(const Settings& settings,
                                       const std::function<bool(const SettingSpec&)>& takes);

// Fails on an unknown name or a value of the wrong kind, at its place; `settings` then is as it was.
Status apply(Settings& settings, const language::syntax::Name& name, const language::syntax::Value& value);

// A statement's WITH list: settings change `settings`, everything else must be a size of the model.
Result<std::vector<language::SizeOverride>> apply_list(Settings& settings,
                                                       std::span<const language::syntax::Setting> list,
                                                       std::span<const std::string_view> sizes,
                                                       std::string_view model);

}  // namespace weft::planner
