#include "weft/planner/search/bucket/fastest_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::search {

Result<bool> FastestPlan::offer(distribute::DistributedPlan plan) {
  PredictedPlan made;
  made.plan = std::move(plan);
  WEFT_TRY(prediction, sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs_,
                                    {.overlap = machine_.overlap, .workers = machine_.workers}));
  made.prediction = std::move(prediction);
  const double now = made.prediction.seconds, was = before_.prediction.seconds;
  if (best && !(now < best->prediction.seconds * (1 - 1e-3))) return false;
  if (!options_.is_asked_for && !(now <= was * (1 - options_.least_gain))) {
    why_not = fmt::format("{} instead of {}: less than {:.0f} % faster", print_seconds(now),
                          print_seconds(was), 100 * options_.least_gain);
    return false;
  }
  if (options_.memory_bytes > 0 &&
      made.prediction.peak_bytes > std::max(options_.memory_bytes, before_.prediction.peak_bytes)) {
    why_not = fmt::format("{} per rank: too large", print_bytes(made.prediction.peak_bytes));
    return false;
  }
  best = std::move(made);
  return true;
}

}  // namespace weft::search
