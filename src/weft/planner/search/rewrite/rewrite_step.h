// weft/planner/search/rewrite/rewrite_step.h -- rewrite the one-device plan if its step gets faster.
//
//   rules ──rewrite_plan──▶ a plan with less roofline cost ──simulate──▶ used if faster by least_gain
//
// The roofline adds up single nodes, but programs fuse pointwise nodes. So the steps of both plans
// are simulated and compared.
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
  double least_gain = 0;             // share of the step time; 0: accept any gain in roofline cost
  const Machine* machine = nullptr;  // for one device; null: compare roofline costs
  std::int64_t rewrites = 6000;      // tried per region
  double seconds = std::numeric_limits<double>::infinity();  // time limit
  std::size_t most_nodes = 100'000;                          // larger plans are not rewritten
};

struct RewrittenStep {
  std::optional<plan::Graph> plan;               // none: unchanged
  double seconds_before = 0, seconds_after = 0;  // roofline
  std::vector<Step> trail;
  Stopped stopped = Stopped::saturated;
  std::string why_not;  // "no rule makes it cheaper"
};

// Ignores distributed rules.
Result<RewrittenStep> rewrite_step(const plan::Graph& plan, const cluster::Device& device,
                                   std::span<const rule::Rule> rules, const ProveRule& prove,
                                   const RewriteStepOptions& options);

}  // namespace weft::search
