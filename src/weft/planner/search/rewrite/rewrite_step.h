// weft/planner/search/rewrite/rewrite_step.h -- the plan of one device that rules lead to, where the step gets faster by it.
//
//   rules ──rewrite_plan──▶ a plan that takes less at best ──simulate──▶ taken if the step is faster by least_gain
//
// At best, each node is priced by itself; as programs run, pointwise nodes share a pass. So what counts is the
// step of the one plan and of the other, simulated alike.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/planner/search/rewrite/rules_to_prove.h"
#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

struct RewriteStepOptions {
  bool learns = false;               // a training plan
  double least_gain = 0;             // of the step; 0: whatever is cheaper at best is taken
  const Machine* machine = nullptr;  // of one device; null: what a plan takes at best is what counts
  std::int64_t rewrites = 6000;      // tried in one region
  double seconds = std::numeric_limits<double>::infinity();  // that it may take
  std::size_t most_nodes = 100'000;                          // of a larger plan nothing is tried
};

struct RewrittenStep {
  std::optional<plan::Graph> plan;               // none: it stays as it is
  double seconds_before = 0, seconds_after = 0;  // at best
  std::vector<Step> trail;
  Stopped stopped = Stopped::saturated;
  std::string why_not;  // "no rule makes it cheaper"
};

// Rules that speak of several ranks are left out.
Result<RewrittenStep> rewrite_step(const plan::Graph& plan, const cluster::Device& device,
                                   std::span<const rule::Rule> rules, const ProveRule& prove,
                                   const RewriteStepOptions& options);

}  // namespace weft::search
