// The command that applies one rule to a plan.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "commands.h"
#include "weft/language/complaint.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/match.h"

namespace weft::golden {
namespace {

const rule::Rule* find_rule(std::string_view name) {
  const std::vector<rule::Rule>& rules = rule::shipped_rules();
  const auto found = std::ranges::find(rules, name, &rule::Rule::name);
  return found == rules.end() ? nullptr : &*found;
}

// The distinct reasons why the rule matches nowhere in the plan.
std::string declined(const rule::Automaton& automaton, const rule::Draft& draft,
                     const rule::Placement& placement, std::vector<std::string> reasons) {
  for (const plan::NodeId node : draft.nodes()) {
    std::vector<rule::Match> found;
    std::vector<rule::Declined> declined;
    automaton.matches_at(draft, node, found, &declined, placement);
    for (rule::Declined& miss : declined) reasons.push_back(std::move(miss.because));
  }
  if (reasons.empty()) return "declines: the left side is not found";
  std::string text;
  for (auto reason = reasons.begin(); reason != reasons.end(); ++reason)
    if (std::find(reasons.begin(), reason, *reason) == reason) text += fmt::format("declines: {}\n", *reason);
  return text;
}

// A plan after the rule, or why the rule declines.
struct Rewritten {
  std::optional<plan::Graph> plan;
  std::string declined;
};

// Applies the rule to the first match that works. With `wanted`, prefers a match that gives that
// plan.
Result<Rewritten> rewrite(const rule::Rule& rule, const plan::Graph& graph, const plan::Mesh& mesh,
                          const plan::Graph* wanted = nullptr) {
  std::vector<plan::Layout> layouts;
  rule::Placement placement;
  if (!mesh.axes.empty()) {
    WEFT_TRY(inferred, spmd::infer_layouts(graph, mesh));
    layouts = std::move(inferred);
    placement = {&mesh, layouts};
  }
  const rule::Automaton automaton({&rule, 1});
  rule::Draft draft(graph);
  for (const plan::MeshAxis& axis : mesh.axes)
    draft.symbol(axis.name);  // a rule may be the first to use the name
  Rewritten rewritten;
  std::vector<std::string> refusals;
  for (const rule::Match& match : automaton.all(draft, placement)) {
    const auto change = draft.apply(rule, match, placement.mesh);
    if (!change.ok()) {
      refusals.push_back(change.error().message);
      continue;
    }
    plan::Graph made = draft.finish();
    draft.undo();
    const bool is_wanted = wanted == nullptr || plan::structural_hash(made) == plan::structural_hash(*wanted);
    if (is_wanted || !rewritten.plan) rewritten.plan = std::move(made);
    if (is_wanted) break;
  }
  if (!rewritten.plan) rewritten.declined = declined(automaton, draft, placement, std::move(refusals));
  // Layout inference must still succeed after a rewrite.
  if (rewritten.plan && placement.mesh != nullptr) {
    const auto after = spmd::infer_layouts(*rewritten.plan, mesh);
    if (!after.ok()) return after.error();
  }
  return rewritten;
}

// Applies the rule's reverse to the rewritten plan.
Result<std::string> reverse(const rule::Rule& rule, const plan::Graph& rewritten, const plan::Mesh& mesh,
                            const plan::Graph& first) {
  WEFT_TRY(again, rewrite(rule, rewritten, mesh, &first));
  if (!again.plan) return fmt::format("{} {}", rule.name, again.declined);
  if (plan::structural_hash(*again.plan) == plan::structural_hash(first))
    return fmt::format("{} restores the plan", rule.name);
  return fmt::format("{} gives\n{}", rule.name, plan::print(*again.plan));
}

}  // namespace

std::string rule_command(const Case& test) {
  const auto answer = [&]() -> Result<std::string> {
    const std::string name = test.flag("name");
    const rule::Rule* rule = find_rule(name);
    if (rule == nullptr) return user_error(fmt::format("unknown rule: {}", name));
    WEFT_TRY(graph, plan::read(test.input, ops::all()));
    plan::Mesh mesh;
    if (const std::string axes = test.flag("mesh"); !axes.empty()) {
      WEFT_TRY(read, plan::read_mesh(axes));
      mesh = std::move(read);
    }
    WEFT_TRY(rewritten, rewrite(*rule, graph, mesh));
    if (!rewritten.plan) return rewritten.declined;
    std::string text = plan::print(*rewritten.plan);
    if (const rule::Rule* back = find_rule(name + ".reverse")) {
      WEFT_TRY(restored, reverse(*back, *rewritten.plan, mesh, graph));
      text += restored;
    }
    return text;
  }();
  return answer.ok() ? *answer : language::complain(answer.error(), test.input);
}

}  // namespace weft::golden
