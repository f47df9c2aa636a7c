// weft/planner/search/rewrite/rewrite_communication.h -- split, merge and move the exchanges of a plan.
//
//   %4 = all-reduce %2 {axis=gpu}             %4 = add %2, %3                    add_past_all_reduce: both
//   %5 = all-reduce %3 {axis=gpu}      =>     %5 = all-reduce %4 {axis=gpu}      are partial on gpu, and
//   %6 = add %4, %5                                                              one sum is sent
//
// Distributed rules (rules/communication.rules) are matched with the current layouts. The value of
// a match is the cost per rank of the nodes it removes minus that of the nodes it adds, plus the
// best of its follow-ups, a few steps deep: splitting an all-reduce pays only if something moves
// between the halves. Equal places, such as those of repeated layers, are evaluated once. All
// matches that pay are applied, the best first. The result is simulated and kept only if the step
// is faster by `least_gain` and within memory.
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
  double least_gain = 0.02;                                  // share of the step time
  double memory_bytes = 0;                                   // limit per rank; 0: no limit
  std::int64_t tries = 4000;                                 // limit on rewrites tried
  double seconds = std::numeric_limits<double>::infinity();  // time limit
};

struct RewrittenCommunication {
  std::optional<PredictedPlan> plan;  // none: unchanged
  std::vector<Step> trail;            // of the plan, if any
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
