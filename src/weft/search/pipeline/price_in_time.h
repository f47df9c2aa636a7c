// weft/search/pipeline/price_in_time.h -- what a step takes that is cut in stages and micro-batches.
//
//   parts ──cut──▶ stages ──schedule's events──▶ seconds, bubble
//                        └──what they hold────▶ memory of every stage
//
// Parts go to stages in their order, so that the slowest stage is as quick as can be; a stage with chunks gets
// as many runs of parts. A stage keeps its parameters, gradients and optimizer states, what its micro-batches in
// flight need for their backward passes, and room for the pass that runs. It updates once its last pass is over.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/cost/mesh_links.h"
#include "weft/pipeline/price.h"
#include "weft/pipeline/schedule_text.h"
#include "weft/pipeline/verify.h"
#include "weft/search/pipeline/part_costs.h"

namespace weft::search {

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
};

struct PricedInTime {
  double seconds = 0;
  std::vector<StageCost> stages;
  pipeline::Schedule schedule;
  pipeline::Price price;
  double peak_bytes = 0;
  std::size_t fullest = 0;  // stage
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
Result<pipeline::Schedule> unfold(const TimeShape& shape);

// `cuts` as cut_parts gives them for the schedule's positions. Fails where the schedule is not one.
Result<PricedInTime> price_in_time(const PartCosts& costs, pipeline::Schedule schedule,
                                   const std::vector<std::size_t>& cuts, const cost::MeshLink& link);

// Whether Ws come apart from Bs, and what a B makes for a W must be kept in between.
bool parts_w(const pipeline::ScheduleText& schedule);

// What it takes where parts can be cut into stages that are alike: all micro-batches, and the time until the last
// stage has the first of them, which chunks shorten and Ws fill.
double likely_seconds(const PartCosts& costs, const TimeShape& shape);
// No way to cut the parts takes less.
double least_seconds(const PartCosts& costs, const TimeShape& shape);
// No stage of it gets by with less.
double least_bytes(const PartCosts& costs, const TimeShape& shape);

}  // namespace weft::search
