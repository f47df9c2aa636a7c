#include "weft/planner/search/rewrite/rewrite_step.h"

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/rules/rule/instance.h"

namespace weft::search {
namespace {

Result<double> simulated_alone(const plan::Graph& plan, const Machine& machine) {
  const plan::Mesh alone{{{"rank", 1}}};
  WEFT_TRY(costs, machine.costs(alone));
  WEFT_TRY(layouts, spmd::infer_layouts(plan, alone));
  WEFT_TRY(prediction,
           sim::predict(plan, alone, layouts, costs, {.workers = machine.workers, .quick = true}));
  return prediction.seconds;
}

}  // namespace

Result<RewrittenStep> rewrite_step(const plan::Graph& plan, const cluster::Device& device,
                                   std::span<const rule::Rule> rules, const ProveRule& prove,
                                   const RewriteStepOptions& options) {
  RewrittenStep result;
  if (plan.node_count() > options.most_nodes) {
    result.why_not = fmt::format("more than {} nodes: too many to search",
                                 print_exact(static_cast<std::int64_t>(options.most_nodes)));
    return result;
  }
  std::vector<rule::Rule> of_one_device;
  for (const rule::Rule& rule : rules)
    if (!rule::is_distributed(rule)) of_one_device.push_back(rule);
  Pricing pricing = price_on(device);
  pricing.learns = options.learns;
  RewriteOptions how;
  how.budget.rewrites = options.rewrites;
  how.budget.seconds = options.seconds;
  RulesToProve trial(std::move(of_one_device), prove);
  while (true) {
    WEFT_TRY(found, rewrite_plan(plan, trial.rules(), pricing, how));
    const double now = found.seconds_after, was = found.seconds_before;
    result.seconds_before = result.seconds_after = was;
    result.stopped = found.stopped;
    const auto faster_by_too_little = [&](double after, double before) {
      return fmt::format("{} instead of {}: less than {:.0f} % faster", print_seconds(after),
                         print_seconds(before), 100 * options.least_gain);
    };
    if (found.trail.empty()) {
      result.why_not = "no rule makes it cheaper";
      return result;
    }
    if (now > was * (1 - options.least_gain)) {
      result.why_not = faster_by_too_little(now, was);
      return result;
    }
    if (!trial.prove_used(found.trail)) continue;
    if (options.machine != nullptr) {
      WEFT_TRY(before, simulated_alone(plan, *options.machine));
      WEFT_TRY(after, simulated_alone(found.plan, *options.machine));
      if (after > before * (1 - options.least_gain)) {
        result.why_not = "simulated, " + faster_by_too_little(after, before);
        return result;
      }
    }
    result.plan = std::move(found.plan);
    result.seconds_after = now;
    result.trail = std::move(found.trail);
    return result;
  }
}

}  // namespace weft::search
