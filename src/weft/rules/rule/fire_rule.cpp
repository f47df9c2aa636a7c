#include "weft/rules/rule/fire_rule.h"

#include <span>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rounded_constants.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {
namespace {

// The instance's plan with only the left side's outputs.
plan::Graph left_plan(const RuleInstance& instance) {
  plan::Graph graph = instance.graph.clone();
  const std::vector<plan::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  graph.clear_outputs();
  for (std::size_t k = 0; k < outputs.size() / 2; ++k) graph.add_output(outputs[k], outputs[k].value);
  return graph;
}

// The same instance, with the rewritten plan in place of its right side.
RuleInstance rewritten(RuleInstance&& instance, const plan::Graph& before, const Draft& draft) {
  plan::Graph graph = draft.graph().clone();
  graph.clear_outputs();
  for (const plan::Output& output : before.outputs()) graph.add_output(output, output.value);
  for (const plan::Output& output : draft.outputs())
    graph.add_output(graph.symbol(fmt::format("{}'", graph.text(output.name))), output.value);
  instance.held = with_rounded_constants(graph);
  instance.graph = std::move(graph);
  return std::move(instance);
}

template <class T>
std::string describe_difference(const InstanceRun<T>& run) {
  return fmt::format("output {} is {} instead of {}", run.difference->output, run.difference->right,
                     run.difference->left);
}

// Compares like the prover: if the sides differ over the field, real numbers decide. Empty if no
// difference was found.
std::string difference_in(const RuleInstance& instance, Random& random) {
  constexpr int kFewRealRuns = 2, kManyRealRuns = 16;
  const auto field = run_field(instance, random);
  if (!field.ok()) return field.error().message;
  RealDraws draws = draws_for(instance);
  for (int run = 0; run < (field->difference ? kManyRealRuns : kFewRealRuns); ++run) {
    draws.begin(run + 1, random);
    const auto real = run_real(instance, draws, random);
    if (!real.ok()) return real.error().message;
    if (real->difference) return describe_difference(*real);
  }
  return {};
}

}  // namespace

Firing fire_rule(const Rule& rule, std::int32_t plans, std::uint64_t seed) {
  Firing firing;
  Random random(seed);
  const Automaton automaton({&rule, 1});
  for (std::int32_t i = 0; i < plans && firing.wrong.empty(); ++i) {
    auto instance = draw_instance(rule, random);
    if (!instance.ok()) {
      firing.wrong = instance.error().message;
      break;
    }
    if (instance->refusal) continue;
    ++firing.plans;
    const plan::Graph before = left_plan(*instance);
    Draft draft(before);
    Placement placement;
    if (instance->distributed()) placement = {&instance->mesh, instance->layouts};
    const std::vector<Match> matches = automaton.all(draft, placement);
    bool fired = false;
    for (const Match& match : matches) {
      auto change = draft.apply(rule, match, instance->distributed() ? &instance->mesh : nullptr);
      if (!change.ok()) continue;
      fired = true;
      break;
    }
    if (!fired) continue;
    const RuleInstance both = rewritten(std::move(*instance), before, draft);
    firing.wrong = difference_in(both, random);
    if (firing.wrong.empty()) ++firing.fired;
  }
  if (firing.wrong.empty() && firing.fired == 0) firing.wrong = "the matcher does not find its left side";
  return firing;
}

}  // namespace weft::rule
