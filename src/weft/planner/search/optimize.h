// weft/planner/search/optimize.h -- from a plan to the plan that runs: one list of stages.
//
//   rewrite                  rules make the plan of one device cheaper
//   distribute               the plan is spread over the devices of the cluster
//   rewrite communication    rules split, merge and move what the ranks exchange
//   sync                     ranks learn by themselves for some steps and then average, where a user asks for it
//   delay                    gradients are summed beside the next step, and applied by it, where a user asks for it
//   codecs                   gradients and weights are made small for the wires, where a user allows it
//   bucket                   gradients that are ready at about the same time are summed by one call
//   decompose                collectives travel in tiles beside the products around them
//   credit                   long all-reduces go in parts, so that what is there first is read first
//   choose algorithms        each exchange is done by what is quickest on its wires
//   schedule                 each rank's tasks are put in order, and the step is simulated
//
// A stage takes the choice of the stage before it and gives one that is as good or better: a plan is changed
// only where the cost model says that the step gets faster by `least_gain`. A stage can be switched off by its
// name. The choice keeps what each stage did, and the rules that led to its plan.
//
// Estimates rank distributions as they are distributed, and what follows may turn the order round. So the families and the
// next best distributions pass all stages, each of them as if it had been given, and the quickest is chosen. A stage
// that keeps later ones from gaining more than itself is left out. More freedom adds candidates and takes none away.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/codec/codec_use.h"
#include "weft/planner/search/codec/place_codecs.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/search/rewrite/rules_to_prove.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

// Of a step: rules that save less are not worth a plan that reads otherwise than the model.
constexpr double kLeastGain = 0.02;

// Of the plan of one device. Alternatives of larger ones that cannot be the quickest keep their estimates: to carry one
// through all stages may take half a minute.
constexpr std::size_t kMostNodesCompared = 4000;

struct Problem {
  const plan::Graph* plan = nullptr;  // of one device
  bool learns = false;                // a training plan: what is computed from parameters runs in every step
  const cluster::Cluster* cluster = nullptr;
  const Machine* machine = nullptr;  // of the cluster
  const Machine* alone = nullptr;    // of one of its devices
  ChooseOptions distribution;
  std::span<const rule::Rule> rules;
  ProveRule prove;
  double least_gain = kLeastGain;  // 0: whatever is cheaper at best is taken
  std::int64_t rewrites = 300;     // of the plan of one device, tried in one region
  std::vector<std::string> off;    // stages, by name
  Codecs codecs;                   // that are allowed: they lose something, so they are never chosen unasked
  double bucket_bytes = 0;         // that gradients travel in; 0: as it is quickest
  std::int64_t tiles = 0;          // that collectives are cut into beside products; 0: as it is quickest
  // When the time is up: what is found by then is chosen from, and stages that would only look for more are left
  // out.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// What a stage did.
struct StageReport {
  enum class Was : std::uint8_t { run, off, not_needed };

  std::string_view stage;
  Was was = Was::run;
  bool changed = false;
  std::size_t nodes = 0;   // of the plan after it
  double seconds = 0;      // of a step of that plan: at best before it is distributed, then as simulated
  double peak_bytes = 0;   // that a rank needs for it; 0: not known before it is distributed
  std::int64_t tried = 0;  // candidates; 0: it does not choose among several
  double took = 0;         // seconds
  std::string said = {};   // "rank=4: slice b", "no rule pays"; where it is off, why, unless it was asked for
};

struct Choice {
  plan::Graph plan;                          // of one device
  double seconds_at_best = 0;                // of it, on one device
  bool rewritten = false;                    // it is not the problem's own any more
  std::optional<DistributionChoice> spread;  // over several devices
  std::vector<Step> trail;                   // rules that led to the plan of one device
  double seconds_before = 0;                 // at best, before those
  Stopped stopped = Stopped::saturated;
  std::vector<Step> communication_trail;  // rules that led from there to the plan of the mesh
  std::vector<StageReport> reports;       // one for each stage
  std::vector<CodedExchanges> coded;      // what codecs did, where they were allowed
  CodecUse codecs;                        // that did so, of a plan in time
  std::string slices;                     // of a plan in time: what stages send each other in slices
  std::string averages;                   // of ranks that learn by themselves: what is averaged, and when
  std::string credit;                     // of long all-reduces that go in parts: how many, and of what size
  std::string delayed;  // of gradients that are applied a step later: which, and what is kept
  std::chrono::steady_clock::time_point until =
      std::chrono::steady_clock::time_point::max();  // the problem's

  Choice clone() const;
};

struct Stage {
  std::string_view name;
  std::string_view purpose;  // one line
  bool several = false;      // only where there are several devices
  bool searches = false;     // not begun where the search before it was ended by hand, or the time is up
  Result<Choice> (*run)(const Problem& problem, Choice choice, StageReport& report);
  bool (*is_needed)(const Problem& problem) = nullptr;    // null: always
  bool (*is_optional)(const Problem& problem) = nullptr;  // the plan may stay as it was before; null: never
};

// A plan with stages and micro-batches competes with the one that passed all of these. It is switched off like them.
inline constexpr std::string_view kPipelineStage = "pipeline";
// Beside what is kept and what all layers do again, it looks for the layers that each stage has to do again.
inline constexpr std::string_view kRecomputeStage = "recompute";
// Beside the schedules that ship, one is made for the times of the stages that were found.
inline constexpr std::string_view kSynthesizeStage = "synthesize";

// Settings switch these off.
inline constexpr std::string_view kTileStage = "tile collectives", kPartitionStage = "partition all-reduces";

// In the order they run.
std::span<const Stage> stages();
std::vector<std::string_view> stage_names();  // and those of plans in time
// "tile collectives" of "decompose", which was its name before.
std::string_view current_stage_name(std::string_view name);

Result<Choice> optimize(const Problem& problem);

// Whether the stages that follow may bring a distribution below so many seconds: they change what ranks exchange. Rewrites,
// buckets and tiles hide a part of that only, codecs may save nearly all of it.
bool may_take_less(const Evaluation& estimate, const Codecs& codecs, double seconds);

}  // namespace weft::search
