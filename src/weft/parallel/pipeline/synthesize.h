// weft/parallel/pipeline/synthesize.h -- finds a schedule for given times.
//
//   times of F, B, W per stage, of transfers, memory  ->  schedule, lower bound, why it stopped
//
// Candidates are the shipped schedules that fit, and the results of a search on each route
// (route_search.h): greedy schedules, schedules from slopes, schedules with turns. With few passes
// an exhaustive search makes the answer optimal. The result has been verified. The same request
// gives the same schedule on every machine.
#pragma once
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/pipeline/schedule_cost.h"

namespace weft::pipeline {

// The share of a forward pass' memory that is held until W in a transformer layer, 32h of 34h + 5as
// with heads of 128 and 1,024 tokens: Korthikanti et al., Reducing activation recomputation in
// large transformer models, MLSys 2023.
inline constexpr double kWeightShare = 0.432;

struct SynthesisRequest {
  std::int32_t stages = 1, micro_batches = 1, chunks = 1;
  Times times;
  std::vector<double> memory;  // in forward passes of one whole stage: one, or per stage; empty: no limit
  double weight_share = kWeightShare;
  Clock clock = Clock::span;
  double effort = 1;  // scales the number of variations: 1 takes about 2 s for 32 stages x 256 micro-batches
};

struct Synthesis {
  Schedule schedule;
  Price price;
  std::vector<double> peak_memory;  // in the unit of `memory`
  double lower_bound = 0;
  std::string from;         // the kind of candidate
  std::string why_stopped;  // "no schedule is better", "tried 400 variations", ...
  std::int64_t tried = 0;
};

// Fails on an invalid request, and if a stage cannot hold one micro-batch of each chunk.
Result<Synthesis> synthesize(const SynthesisRequest& request);

// Possible placements of chunks: a line for one chunk per stage, else also a v and a loop; the most
// promising first.
std::vector<Route> routes_of(const SynthesisRequest& request);

// A lower bound on the cost of any schedule of these stages, over all these routes.
double lower_bound(const SynthesisRequest& request);

// The peak memory per stage if B frees all but `weight_share`.
std::vector<double> peak_memory(const Schedule& schedule, double weight_share);

}  // namespace weft::pipeline
