// weft/planner/search/optimize.h -- run the planner stages that turn a plan into the plan that runs.
//
//   rewrite                  apply rules that make the plan of one device cheaper
//   distribute               distribute the plan over the devices of the cluster
//   rewrite communication    apply rules that split, merge and move collectives
//   local sgd                train each rank alone for some steps, then average; if requested
//   delay gradients          sum gradients during the next step, which applies them; if requested
//   codecs                   compress gradients and weights for communication; if allowed
//   bucket                   sum gradients that are ready at about the same time in one call
//   tile collectives         tile collectives to overlap with the products around them
//   partition all-reduces    partition long all-reduces, so that results needed first arrive first
//   choose algorithms        choose the fastest algorithm for each exchange
//   schedule                 order each rank's tasks and simulate the step
//
// Each planner stage turns the choice of the previous one into one that is at least as good: it
// changes a plan only if the cost model predicts a step that is faster by `least_gain`. A planner
// stage can be disabled by name. The choice records what each one did, and the rules that led to
// its plan.
//
// Distributions are ranked by estimates before the later planner stages, which may change the
// order. So the families and the next best distributions pass all planner stages as if given, and
// the fastest is chosen. A planner stage is skipped if later ones gain more without it. Additional
// freedom only adds candidates.
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

// Share of the step time. Rules that save less do not justify a plan that differs from the model.
constexpr double kLeastGain = 0.02;

// Nodes of the plan of one device. In larger plans, alternatives that cannot win keep their
// estimates: running one through all planner stages may take half a minute.
constexpr std::size_t kMostNodesCompared = 4000;

struct Problem {
  const plan::Graph* plan = nullptr;  // for one device
  bool learns = false;                // a training plan: values computed from parameters change every step
  const cluster::Cluster* cluster = nullptr;
  const Machine* machine = nullptr;  // for the cluster
  const Machine* alone = nullptr;    // for one of its devices
  ChooseOptions distribution;
  std::span<const rule::Rule> rules;
  ProveRule prove;
  double least_gain = kLeastGain;  // 0: accept any gain in roofline cost
  std::int64_t rewrites = 300;     // most rewrites tried per region of the one-device plan
  std::vector<std::string> off;    // names of disabled planner stages
  Codecs codecs;                   // allowed codecs: they lose precision, so they are never used by default
  double bucket_bytes = 0;         // bucket size for gradients; 0: choose the fastest
  std::int64_t tiles = 0;          // tiles per collective; 0: choose the fastest
  double simpler_within = 0;       // share of the step time within which the simplest plan is chosen
  // Time limit. After it, the best plan found so far is used, and planner stages that only search
  // are skipped.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Report of a planner stage.
struct StageReport {
  enum class Was : std::uint8_t { run, off, not_needed };

  std::string_view stage;
  Was was = Was::run;
  bool changed = false;
  std::size_t nodes = 0;   // of the resulting plan
  double seconds = 0;      // of a step: roofline before it is distributed, then simulated
  double peak_bytes = 0;   // per rank; 0: unknown before it is distributed
  std::int64_t tried = 0;  // candidates; 0: there is no choice
  double took = 0;         // seconds
  std::string said = {};   // "rank=4: slice b", "no rule pays"; if off, why, unless by the user
};

struct Choice {
  plan::Graph plan;                          // for one device
  double seconds_at_best = 0;                // roofline cost on one device
  bool rewritten = false;                    // differs from the problem's plan
  std::optional<DistributionChoice> spread;  // over several devices
  std::vector<Step> trail;                   // rules that led to the one-device plan
  double seconds_before = 0;                 // roofline cost before those rules
  Stopped stopped = Stopped::saturated;
  std::vector<Step> communication_trail;  // rules applied after distributing
  std::vector<StageReport> reports;       // one per planner stage
  std::vector<CodedExchanges> coded;      // effect of codecs, if allowed
  CodecUse codecs;                        // used by a pipeline plan
  std::string slices;                     // pipeline plan: what stages send in slices
  std::string averages;                   // local steps: what is averaged, and when
  std::string credit;                     // partitioned all-reduces: number and size
  std::string delayed;                    // delayed gradients: which, and bytes kept
  std::string simpler;                    // the faster plan that was left, and its gain
  std::chrono::steady_clock::time_point until =
      std::chrono::steady_clock::time_point::max();  // of the problem

  Choice clone() const;
};

struct Stage {
  std::string_view name;
  std::string_view purpose;  // one line
  bool several = false;      // only with several devices
  bool searches = false;     // skipped after an interrupt or the time limit
  Result<Choice> (*run)(const Problem& problem, Choice choice, StageReport& report);
  bool (*is_needed)(const Problem& problem) = nullptr;    // null: always
  bool (*is_optional)(const Problem& problem) = nullptr;  // may be skipped if that is faster; null: never
};

// A pipeline plan competes with the result of these planner stages. It is disabled like them.
inline constexpr std::string_view kPipelineStage = "pipeline";
// Beside no and full recomputation, searches for the layers that each stage must recompute.
inline constexpr std::string_view kRecomputeStage = "recompute";
// Beside shipped schedules, synthesizes one for the stage times found.
inline constexpr std::string_view kSynthesizeStage = "synthesize";

// Settings can disable these.
inline constexpr std::string_view kTileStage = "tile collectives", kPartitionStage = "partition all-reduces";

// In execution order.
std::span<const Stage> stages();
std::vector<std::string_view> stage_names();  // including those for pipeline plans
// "tile collectives" for "decompose", its former name.
std::string_view current_stage_name(std::string_view name);

Result<Choice> optimize(const Problem& problem);

// Whether later planner stages may reduce a distribution's step below `seconds`. They only reduce
// communication: rewrites, buckets and tiles hide part of it, codecs may save nearly all of it.
bool may_take_less(const Evaluation& estimate, const Codecs& codecs, double seconds);

}  // namespace weft::search
