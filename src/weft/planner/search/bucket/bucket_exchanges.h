// weft/planner/search/bucket/bucket_exchanges.h -- which gradients travel together.
//
//   backward   | g9 | g8 |  g7  | g6 | ...         Every gradient is summed over ranks by itself at first. Each
//   axis gpu        |-g9 g8-|   |-g7 g6-| ...      call has its latency, and small ones are all latency: so
//                                                  those that are ready at about the same time go as one.
//
// When each is ready is what the simulation of the plan says; what a call takes, what the cluster's prices say.
// Of these, partition::bucketise makes the buckets of each axis. The plan with them is simulated, and so is one
// with buckets of 25 MiB, as frameworks have them; the quickest stands, if it is quicker by `least_gain` and no
// larger than it may be. Where others use the axis too, both are tried at low priority as well: then what computing
// waits for does not stand behind a long bucket. What sums are equal to is not changed by who travels with whom.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct BucketOptions {
  double least_gain = 0.02;  // of the step
  double memory_bytes = 0;   // that a rank may take; 0: no limit
  double fixed_bytes = 0;    // above 0: buckets are closed when they hold so much, whatever they gain
};

struct Bucketed {
  std::optional<PredictedPlan> plan;  // none: it stays as it is
  std::string said;                   // "98 all-reduces in 3 calls"; where there is no plan, why not
};

Result<Bucketed> bucket_exchanges(const PredictedPlan& before, const Machine& machine,
                                  const BucketOptions& options = {});

}  // namespace weft::search
