// weft/planner/search/pipeline/estimate_pipeline.h -- step time and memory of a pipeline plan.
//
//   parts ──cut──▶ stages ──schedule simulation──▶ seconds, bubble
//                        └──stored tensors───────▶ memory per stage
//
// Consecutive parts are assigned to stages so that the slowest stage is as fast as possible. A
// stage with chunks gets that many runs of parts. A stage holds its parameters, gradients and
// optimizer states, the activations of its micro-batches in flight, and scratch memory for the
// running pass. It updates after its last pass.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/parallel/pipeline/schedule_text.h"
#include "weft/parallel/pipeline/verify.h"
#include "weft/planner/search/pipeline/part_costs.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::search {

// Costs of the parts on every stage: the same everywhere, or by the stage's devices and mesh.
struct StagedCosts {
  struct Kind {
    PartCosts costs;
    double room = std::numeric_limits<double>::infinity();  // bytes per rank
    std::string device = {};                                // device name, if there are several kinds
  };
  std::vector<Kind> kinds;
  std::vector<std::size_t> of_stage = {};  // index in kinds; empty: all the same
  double within_bytes_per_second = 0;      // within a stage's mesh, if meshes differ; 0: unlimited
  // By axis of a stage's mesh: along which its ranks can gather an activation that was sent in
  // slices. Empty: activations are sent whole.
  struct Axis {
    std::int32_t ranks = 1;
    cost::MeshLink link = {};
  };
  std::vector<Axis> slicing = {};
  bool must_slice = false;  // even if that is slower

  // What the software of the cluster adds; Weft's own adds nothing.
  cluster::Stack stack = {};
  bool overlaps_reduce = false, overlaps_gather = false;
  bool recomputes_layers = false;  // whole ones
  std::size_t groups = 0;          // of ranks that communicate
  std::int64_t tensor_ranks = 1;   // that share a micro-batch

  StagedCosts() = default;
  StagedCosts(PartCosts alike, double room = std::numeric_limits<double>::infinity())
      : kinds{{std::move(alike), room}} {}
  bool is_mixed() const { return !of_stage.empty(); }
  const Kind& at(std::size_t stage) const { return kinds[of_stage.empty() ? 0 : of_stage[stage]]; }
};

// The end of each of `positions` runs of parts. Minimizes the longest run, then the differences
// between runs. REQUIRES: at least `positions` parts.
std::vector<std::size_t> cut_parts(const PartCosts& costs, std::size_t positions);
// The weights for cut_parts: F, B and W of each part together.
std::vector<double> work_of(const PartCosts& costs);

struct StageCost {
  struct Run {
    std::size_t first = 0, count = 0;  // parts
  };
  std::vector<Run> runs;                                        // one per chunk
  double forward = 0, backward = 0, weight = 0, computing = 0;  // seconds per micro-batch
  double products = 0, attention = 0;                           // seconds of `computing`
  double on_host = 0;                                           // bytes of offloaded optimizer states
  double repeated = 0;   // of backward and weight: seconds of recomputation
  double update = 0;     // seconds per step: gradient sums and optimizer
  double tied = 0;       // of those: exchanging tied parameters with other stages
  double transfer = 0;   // seconds to the next stage
  double idle = 0;       // seconds per step
  double in_flight = 0;  // most micro-batches in flight
  sim::MemoryByKind memory;
  double needed_bytes = 0;  // with what the software takes besides
  std::string device = {};  // in a mixed cluster
};

struct PipelineEstimate {
  double seconds = 0;
  std::vector<StageCost> stages;
  pipeline::Schedule schedule;
  pipeline::Price price;
  bool slices = false;  // ranks of a stage that hold the same activation each send a slice
  bool fits = true;
  std::size_t fullest = 0;  // the stage with the least free memory
  double needed_bytes = 0;  // of that stage, with what the software takes besides
  double peak_bytes = 0, room = std::numeric_limits<double>::infinity();  // of that stage
  // Idle seconds of the busiest stage between its first and last pass, by cause.
  double filling = 0, transferring = 0;
  double unequal = 0;   // busy seconds of the busiest stage minus the average
  double updating = 0;  // after the last pass
  double bubble() const { return filling + transferring; }
  double bubble_rate() const { return seconds > 0 ? bubble() / seconds : 0; }
};

struct TimeShape {
  std::int32_t stages = 1, chunks = 1;
  std::int64_t micro_batches = 1;
  const pipeline::ScheduleText* schedule = nullptr;
};

// Chunks per stage under this schedule: `asked` if above 1, else the schedule's default.
std::int32_t chunks_of(const pipeline::ScheduleText& schedule, std::int32_t asked);

// A verified schedule, and the most micro-batches that each stage holds at once.
struct Unfolded {
  pipeline::Schedule schedule;
  std::vector<double> in_flight;
};
// Fails if the result is not a valid schedule.
Result<Unfolded> unfold(const TimeShape& shape);

// `sums`, seconds and memory only, is faster than `all`, which adds the breakdown and the timeline.
enum class Detail : std::uint8_t { sums, all };
// `cuts`: as returned by cut_parts for the schedule's positions. Fails if costs are NaN.
Result<PipelineEstimate> estimate_pipeline(const StagedCosts& costs, const Unfolded& order,
                                           const std::vector<std::size_t>& cuts, const cost::MeshLink& link,
                                           Detail detail = Detail::all);

// Whether W is split from B, so that gradients made by B must be kept until W.
bool splits_weight_passes(const pipeline::ScheduleText& schedule);

// Step time with balanced stages: all micro-batches, plus the time until the last stage receives
// the first one, which chunks shorten and W passes fill.
double likely_seconds(const StagedCosts& costs, const TimeShape& shape);
// Lower bound on the step time over all cuts.
double least_seconds(const StagedCosts& costs, const TimeShape& shape);
// Lower bound on the average memory per stage.
double least_bytes(const PartCosts& costs, const TimeShape& shape);
// Likely memory of the fullest stage, from the schedule's stated peak; 0 if it states none.
double held_bytes(const PartCosts& costs, const TimeShape& shape);

}  // namespace weft::search
