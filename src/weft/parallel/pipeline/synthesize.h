// weft/parallel/pipeline/synthesize.h -- a schedule for the times at hand.
//
//   times of F, B, W of each stage, of transfers, memory  ->  the best schedule found, a bound, why it stopped
//
// Candidates are the shipped schedules that fit and what a search on each route finds (route_search.h): greedy ones,
// ones from slopes, ones that take turns. Few passes are searched through: then the answer is the best there is.
// The result has been verified. The same request gives the same schedule on every machine.
#pragma once
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/price.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

// The part of a forward pass' memory that waits for W in a transformer layer, 32h of 34h + 5as with heads of 128
// and 1,024 tokens: Korthikanti et al., Reducing activation recomputation in large transformer models, MLSys 2023.
inline constexpr double kWeightShare = 0.432;

struct SynthesisRequest {
  std::int32_t stages = 1, micro_batches = 1, chunks = 1;
  Times times;
  std::vector<double>
      memory;  // in forward passes of one whole stage, one for all or one a stage; empty: no limit
  double weight_share = kWeightShare;
  Clock clock = Clock::span;
  double effort =
      1;  // how many variations are tried: 1 is about two seconds for 32 stages x 256 micro-batches
};

struct Synthesis {
  Schedule schedule;
  Price price;
  std::vector<double> peak_memory;  // as `memory` counts
  double lower_bound = 0;
  std::string from;         // what the schedule was made from
  std::string why_stopped;  // "no schedule is better", "tried 400 variations", ...
  std::int64_t tried = 0;
};

// Fails when the request makes no sense or a stage cannot hold one micro-batch of each chunk.
Result<Synthesis> synthesize(const SynthesisRequest& request);

// Where chunks may lie: on a line with one chunk a stage, else also in a v and a loop; the likeliest first.
std::vector<Route> routes_of(const SynthesisRequest& request);

// No schedule of these stages costs less, on any of these routes.
double lower_bound(const SynthesisRequest& request);

// What each stage of a schedule holds at most when B frees all but `weight_share`.
std::vector<double> peak_memory(const Schedule& schedule, double weight_share);

}  // namespace weft::pipeline
