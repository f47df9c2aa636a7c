// weft/planner/search/rewrite/rewrite_communication.h -- the plan of a mesh, with its exchanges split, merged and moved.
//
//   %4 = all-reduce %2 {axis=gpu}             %4 = add %2, %3                    add_past_all_reduce: both are
//   %5 = all-reduce %3 {axis=gpu}      =>     %5 = all-reduce %4 {axis=gpu}      addends on gpu, and a sum of
//   %6 = add %4, %5                                                              sums is sent once
//
// Rules that speak of several ranks (rules/communication.rules) are matched with the layouts at hand. What a
// match is worth is the price on a rank of what it takes away less that of what it makes, with the best of
// what it makes possible, a few steps on: splitting an all-reduce pays only where something moves between the
// halves. Equal places, such as those of the layers of a model, are judged once. All that pays is taken, the
// most worth first, and the result is simulated: it stands only if the step is faster by `least_gain` and no
// larger than it may be.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/device.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/planner/search/rewrite/rules_to_prove.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

struct CommunicationOptions {
  double least_gain = 0.02;                                  // of the step
  double memory_bytes = 0;                                   // that a rank may take; 0: no limit
  std::int64_t tries = 4000;                                 // rewrites tried before the search stops
  double seconds = std::numeric_limits<double>::infinity();  // likewise
};

struct RewrittenCommunication {
  std::optional<PredictedPlan> plan;  // none: it stays as it is
  std::vector<Step> trail;            // of the plan, where there is one
  std::string why_not;                // "no rule pays", "12.1 ms instead of 12.2 ms: .."
  Stopped stopped = Stopped::saturated;
  Counts counts;
};

Result<RewrittenCommunication> rewrite_communication(const PredictedPlan& before, const Machine& machine,
                                                     const cluster::Device& device,
                                                     std::span<const rule::Rule> rules,
                                                     const ProveRule& prove,
                                                     const CommunicationOptions& options = {});

}  // namespace weft::search
