// weft rules apply and why: which rules rewrite a plan, and why others do not.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/rules.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/read_plan.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/rewrite/plan_cache.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/runtime/run/run_plan.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(std::span<const search::Step> trail) {
  Json json = Json::array();
  for (const search::Step& step : trail)
    json.push_back({{"rule", step.rule}, {"replaced", step.replaced}, {"seconds", step.change}});
  return json;
}

Json to_json(const search::Counts& counts) {
  return {{"regions", counts.regions}, {"searched", counts.searched}, {"from_cache", counts.from_cache},
          {"matches", counts.matches}, {"rewrites", counts.rewrites}, {"nodes_priced", counts.priced},
          {"plans", counts.plans}};
}

std::string percent_saved(double before, double after) {
  return before > 0 ? fmt::format("{:.1f} %", 100 * (before - after) / before) : std::string("0 %");
}

// The largest difference, relative to the largest output, that rounding can cause between two
// plans.
double check_tolerance(const plan::Graph& plan) {
  constexpr double kFloats = 1e-3, kSixteenBits = 5e-2;
  for (std::size_t value = 0; value < plan.value_count(); ++value) {
    const plan::DType dtype = plan.type(plan::ValueId(value)).dtype;
    if (dtype == plan::DType::bf16 || dtype == plan::DType::f16) return kSixteenBits;
  }
  return kFloats;
}

// The first output that differs by more than the tolerance; null if there is none.
const run::OutputAgreement* find_disagreement(const run::Agreement& agreement, double tolerance) {
  // A NaN exceeds any tolerance.
  for (const run::OutputAgreement& output : agreement.outputs)
    if (!(output.relative() <= tolerance)) return &output;
  return nullptr;
}

// `differs` describes the difference if both plans were run and disagree; then no plan is written.
Result<std::string> apply(const RulesApply& request, planner::Warnings& warnings, std::string& differs) {
  WEFT_TRY(graph, session::read_plan(request.plan));
  WEFT_TRY(device, session::find_device(request.device));
  WEFT_TRY(proven, planner::read_proven_rules(request.files, graph, warnings));
  const std::vector<rule::Rule>& rules = proven.rules;
  std::vector<std::string> refused;
  for (const rule::RuleSet::Refused& other : proven.refused) refused.push_back(other.rule.name);
  std::optional<search::PlanCache> cache;
  search::RewriteOptions options;
  if (!request.cache.empty()) {
    const Status is_private = cache.emplace(request.cache).check();
    warnings.add("the plan cache is neither read nor written", is_private);
    if (is_private.ok()) options.cache = &*cache;
  }
  WEFT_TRY(found, search::rewrite_plan(graph, rules, search::price_on(device), options));
  std::optional<run::Agreement> agreement;
  if (request.check) {
    WEFT_TRY(compared, run::compare_runs(graph, found.plan));
    agreement = std::move(compared);
    if (const auto* wrong = find_disagreement(*agreement, check_tolerance(graph)))
      differs = fmt::format(
          "error: the plans differ: {} by {:.1e} of its largest number, at most {:.0e} is rounding\n",
          wrong->output, wrong->relative(), check_tolerance(graph));
  }
  if (!request.to.empty() && differs.empty())
    WEFT_TRY_STATUS(write_file_atomically(request.to, plan::print(found.plan)));

  if (request.format == session::Format::json) {
    Json json = {{"plan", request.plan},
                 {"device", device.name},
                 {"rules", rules.size()},
                 {"refused", refused},
                 {"nodes_before", graph.node_count()},
                 {"nodes_after", found.plan.node_count()},
                 {"seconds_before", found.seconds_before},
                 {"seconds_after", found.seconds_after},
                 {"stopped", search::name(found.stopped)},
                 {"counts", to_json(found.counts)},
                 {"trail", to_json(found.trail)}};
    if (agreement)
      json["check"] = {{"relative_difference", agreement->largest()},
                       {"seconds_before", agreement->seconds_a},
                       {"seconds_after", agreement->seconds_b}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::string out = found.trail.empty() ? "no rule makes it cheaper\n"
                                        : print(explain::trail_section(found.trail), explain::kUsualWidth);
  out += fmt::format("\nat best {} on one {}, was {}: {} less; {} nodes, were {}\n",
                     print_seconds(found.seconds_after), device.name, print_seconds(found.seconds_before),
                     percent_saved(found.seconds_before, found.seconds_after),
                     print_exact(found.plan.node_count()), print_exact(graph.node_count()));
  const search::Counts& counts = found.counts;
  out += fmt::format(
      "{} rules, {} matches, {} rewrites tried, {} nodes estimated in {} of {} regions ({} from the cache); "
      "stopped: {}\n",
      rules.size(), print_exact(counts.matches), print_exact(counts.rewrites), print_exact(counts.priced),
      counts.searched, counts.regions, counts.from_cache, search::name(found.stopped));
  if (!refused.empty())
    out += fmt::format("not proven, so not used: {}; run weft rules prove for the reason\n",
                       fmt::join(refused, ", "));
  if (agreement)
    out += fmt::format("both ran here: the numbers differ by at most {:.1e} of the largest\n",
                       agreement->largest());
  return out;
}

Result<std::string> why(const RulesWhy& request, planner::Warnings& warnings) {
  WEFT_TRY(graph, session::read_plan(request.plan));
  WEFT_TRY(device, session::find_device(request.device));
  WEFT_TRY(all, planner::read_rules(request.files));
  WEFT_TRY_STATUS(planner::find_rule(all, request.rule));
  WEFT_TRY(proven, planner::read_proven_rules(request.files, graph, warnings));
  const std::vector<rule::Rule>& rules = proven.rules;
  if (std::ranges::find(rules, request.rule, &rule::Rule::name) == rules.end())
    return fmt::format(
        "{} may not fire here: it is not proven, or it is about several ranks and the plan about one\n",
        request.rule);
  WEFT_TRY(found, search::rewrite_plan(graph, rules, search::price_on(device),
                                       {.budget = {}, .keep_refusals = true}));

  std::erase_if(found.trail, [&](const search::Step& step) { return step.rule != request.rule; });
  std::erase_if(found.refusals, [&](const search::Refusal& refusal) { return refusal.rule != request.rule; });
  if (request.format == session::Format::json) {
    Json refused = Json::array();
    for (const search::Refusal& refusal : found.refusals)
      refused.push_back({{"nodes", refusal.nodes}, {"because", refusal.because}});
    return Json{{"plan", request.plan},
                {"rule", request.rule},
                {"taken", to_json(found.trail)},
                {"declined", refused}}
               .dump(-1, ' ', false, Json::error_handler_t::replace) +
           "\n";
  }
  std::string out;
  if (!found.trail.empty())
    out += fmt::format("taken {} times:\n{}", found.trail.size(),
                       print(explain::trail_section(found.trail), explain::kUsualWidth));
  if (!found.refusals.empty()) {
    explain::Table table({{"because"}, {"at"}});
    for (const search::Refusal& refusal : found.refusals)
      table.add({refusal.because, fmt::format("{}", fmt::join(refusal.nodes, ", "))});
    out += fmt::format("{}declined {} times:\n{}", out.empty() ? "" : "\n", found.refusals.size(),
                       table.print());
  }
  if (out.empty())
    out = fmt::format(
        "{} was not considered: nothing in {} looks like its left side, at any step of the search\n",
        request.rule, request.plan);
  return out;
}

}  // namespace

session::Reply run(const RulesApply& request) {
  planner::Warnings warnings;
  std::string differs;
  session::Reply reply = session::to_reply(apply(request, warnings, differs));
  if (reply.exit_code == session::ExitCode::ok && !differs.empty()) {
    reply.exit_code = session::ExitCode::user_error;
    reply.complaint = std::move(differs);
  }
  return session::with_warnings(std::move(reply), warnings);
}

session::Reply run(const RulesWhy& request) {
  planner::Warnings warnings;
  return session::with_warnings(session::to_reply(why(request, warnings)), warnings);
}

}  // namespace weft::command
