// weft/planner/search/pipeline/price_in_time.h -- what a step takes that is cut in stages and micro-batches.
//
//   parts ──cut──▶ stages ──schedule's events──▶ seconds, bubble
//                        └──what they hold────▶ memory of every stage
//
// Parts go to stages in their order, so that the slowest stage is as quick as can be; a stage with chunks gets
// as many runs of parts. A stage keeps its parameters, gradients and optimizer states, what its micro-batches in
// flight need for their backward passes, and room for the pass that runs. It updates once its last pass is over.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/price.h"
#include "weft/parallel/pipeline/schedule_text.h"
#include "weft/parallel/pipeline/verify.h"
#include "weft/planner/search/pipeline/part_costs.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::search {

// What parts cost on every stage: the same everywhere, or by the devices and the mesh that a stage has.
struct StagedCosts {
  struct Kind {
    PartCosts costs;
    double room = std::numeric_limits<double>::infinity();  // bytes of a rank
    std::string device = {};                                // its name, where there are several
  };
  std::vector<Kind> kinds;
  std::vector<std::size_t> of_stage = {};  // empty: all stages are of the only kind
  double within_bytes_per_second = 0;      // of a stage's mesh, where meshes differ; 0: as much as you like
  // By axis of a stage's mesh: what its ranks could put together along it that came in slices. Empty: they send all
  // that they have.
  struct Axis {
    std::int32_t ranks = 1;
    cost::MeshLink link = {};
  };
  std::vector<Axis> slicing = {};
  bool must_slice = false;  // whether it pays or not

  StagedCosts() = default;
  StagedCosts(PartCosts alike, double room = std::numeric_limits<double>::infinity())
      : kinds{{std::move(alike), room}} {}
  bool is_mixed() const { return !of_stage.empty(); }
  const Kind& at(std::size_t stage) const { return kinds[of_stage.empty() ? 0 : of_stage[stage]]; }
};

// Where each of `positions` runs of parts ends: the longest work of one is as short as can be, and of equals the
// runs are most alike. REQUIRES: there are as many parts.
std::vector<std::size_t> cut_parts(const PartCosts& costs, std::size_t positions);
// What it is cut by: F, B and W of each part together.
std::vector<double> work_of(const PartCosts& costs);

struct StageCost {
  struct Run {
    std::size_t first = 0, count = 0;  // parts
  };
  std::vector<Run> runs;                                        // one a chunk
  double forward = 0, backward = 0, weight = 0, computing = 0;  // seconds of a micro-batch
  double on_host = 0;                                           // bytes of optimizer states
  double repeated = 0;   // of backward and weight: forward work that is done again
  double update = 0;     // seconds of a step: sums of gradients and optimizer
  double tied = 0;       // of those, to exchange gradients and values of what other stages hold too
  double transfer = 0;   // seconds to the next stage
  double idle = 0;       // seconds of a step
  double in_flight = 0;  // micro-batches at most
  sim::MemoryByKind memory;
  std::string device = {};  // of a mixed cluster
};

struct PricedInTime {
  double seconds = 0;
  std::vector<StageCost> stages;
  pipeline::Schedule schedule;
  pipeline::Price price;
  bool slices = false;  // ranks of a stage that have the same to send send a slice of it each
  bool fits = true;
  std::size_t fullest = 0;  // stage: the one with the least room left
  double peak_bytes = 0, room = std::numeric_limits<double>::infinity();  // of that
  // Seconds that the busiest stage does not compute between its first and last pass, by cause.
  double filling = 0, transferring = 0;
  double unequal = 0;   // by which it is busier than the stages are on average
  double updating = 0;  // after the last pass
  double bubble() const { return filling + transferring; }
  double bubble_rate() const { return seconds > 0 ? bubble() / seconds : 0; }
};

struct TimeShape {
  std::int32_t stages = 1, chunks = 1;
  std::int64_t micro_batches = 1;
  const pipeline::ScheduleText* schedule = nullptr;
};

// Chunks that a stage has under this schedule: those that are asked for, or else its own number.
std::int32_t chunks_of(const pipeline::ScheduleText& schedule, std::int32_t asked);

// A schedule that has been verified, and the micro-batches that each stage holds at most.
struct Unfolded {
  pipeline::Schedule schedule;
  std::vector<double> in_flight;
};
// Fails where it is not a schedule.
Result<Unfolded> unfold(const TimeShape& shape);

// Seconds and memory alone are quicker to have than where the seconds go, and the timeline with its schedule.
enum class Detail : std::uint8_t { sums, all };
// `cuts` as cut_parts gives them for the schedule's positions. Fails where costs are no numbers.
Result<PricedInTime> price_in_time(const StagedCosts& costs, const Unfolded& order,
                                   const std::vector<std::size_t>& cuts, const cost::MeshLink& link,
                                   Detail detail = Detail::all);

// Whether Ws come apart from Bs, and what a B makes for a W must be kept in between.
bool parts_w(const pipeline::ScheduleText& schedule);

// What it takes where parts can be cut into stages that are alike: all micro-batches, and the time until the last
// stage has the first of them, which chunks shorten and Ws fill.
double likely_seconds(const StagedCosts& costs, const TimeShape& shape);
// No way to cut the parts takes less.
double least_seconds(const StagedCosts& costs, const TimeShape& shape);
// Its stages do not get by with less on average.
double least_bytes(const PartCosts& costs, const TimeShape& shape);
// What its fullest stage is likely to hold, by what the schedule states of itself; 0 where that states nothing.
double held_bytes(const PartCosts& costs, const TimeShape& shape);

}  // namespace weft::search
