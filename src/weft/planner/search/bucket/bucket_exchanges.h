// weft/planner/search/bucket/bucket_exchanges.h -- group gradients into buckets.
//
//   backward   | g9 | g8 |  g7  | g6 | ...         Initially every gradient has its own all-reduce. Each
//   axis gpu        |-g9 g8-|   |-g7 g6-| ...      call has latency, which dominates small ones, so
//                                                  gradients that are ready at similar times are merged.
//
// The simulation of the plan gives the ready times, and the cluster's costs the time of a call.
// From these, partition::bucketise forms the buckets of each axis. The plan with them is simulated,
// and so is one with buckets of 25 MiB, as in other frameworks. The fastest is used if it is faster
// by `least_gain` and within memory. If other exchanges use the axis, both are also tried at low
// priority, so that exchanges that computation waits for are not queued behind a long bucket.
// Bucket membership does not change the sums.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct BucketOptions {
  double least_gain = 0.02;  // share of the step time
  double memory_bytes = 0;   // limit per rank; 0: no limit
  double fixed_bytes = 0;    // above 0: use buckets of this size, whatever they gain
};

struct Bucketed {
  std::optional<PredictedPlan> plan;  // none: unchanged
  std::string said;                   // "98 all-reduces in 3 calls"; without a plan, the reason
};

Result<Bucketed> bucket_exchanges(const PredictedPlan& before, const Machine& machine,
                                  const BucketOptions& options = {});

}  // namespace weft::search
