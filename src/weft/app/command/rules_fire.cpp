// weft rules test: proves every rule again, and applies it to plans generated for it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/rules.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/rules/equation/prove_equation.h"
#include "weft/rules/equation/rule_from_equation.h"
#include "weft/rules/rule/fire_rule.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kPlans = 20;
constexpr std::uint64_t kSeed = 0xf12e;

// The result of testing one rule; `firing.wrong` is empty if it passed.
struct TestedRule {
  std::string name;
  rule::Judgement judgement = rule::Judgement::ill_typed;
  rule::Firing firing;
};

TestedRule test_rule(const rule::Rule& rule) {
  const rule::RuleProof proof = rule::prove(rule);
  if (!holds(proof.verdict)) return {rule.name, proof.verdict.judgement, {.wrong = "not proven"}};
  rule::Rule firing_rule = rule;
  firing_rule.when.insert(firing_rule.when.end(), proof.guard.begin(), proof.guard.end());
  return {rule.name, proof.verdict.judgement, rule::fire_rule(firing_rule, kPlans, kSeed)};
}

// Tests a positional equation by applying the equivalent rule over named indices, if there is one.
TestedRule test_equation(const formats::RuleLine& line) {
  if (!line.equation.ok())
    return {line.id, rule::Judgement::ill_typed, {.wrong = line.equation.error().message}};
  const rule::Verdict verdict = equation::prove(*line.equation);
  TestedRule tested{line.id, verdict.judgement, {}};
  if (!holds(verdict)) {
    tested.firing.wrong = "not proven";
    return tested;
  }
  for (const equation::LocalValues local : {equation::LocalValues::partial, equation::LocalValues::varying}) {
    const auto text =
        equation::rule_from_equation(*line.equation, "by_position", "as stated", line.id, local);
    if (!text.ok() || !*text) continue;
    const auto rules = rule::parse_rules(**text, line.id, ops::all());
    if (!rules.ok()) continue;
    const TestedRule by_names = test_rule(rules->front());
    if (by_names.firing.plans > 0) return {line.id, verdict.judgement, by_names.firing};
  }
  return tested;
}

Result<std::vector<TestedRule>> test_all(const std::vector<std::string>& files) {
  std::vector<TestedRule> tested;
  std::vector<std::string> texts;
  for (const std::string& path : files) {
    if (!path.ends_with(".jsonl")) {
      texts.push_back(path);
      continue;
    }
    WEFT_TRY(text, read_file(path, planner::kLargestRuleFile));
    formats::RuleLines lines(text);
    while (const auto line = lines.next()) tested.push_back(test_equation(*line));
  }
  if (!files.empty() && texts.empty()) return tested;
  WEFT_TRY(rules, planner::read_rules(texts));
  for (const rule::Rule& rule : rules) tested.push_back(test_rule(rule));
  return tested;
}

}  // namespace

session::Reply run(const RulesTest& request) {
  const auto tested = test_all(request.files);
  if (!tested.ok()) return session::complain(tested.error());
  explain::Table table({{"rule"}, {"verdict"}, {"fired", explain::Align::right}, {"wrong"}});
  Json json = Json::array();
  int failed = 0;
  for (const auto& [name, judgement, firing] : *tested) {
    failed += firing.wrong.empty() ? 0 : 1;
    const std::string_view verdict = rule::name(judgement);
    if (request.format == session::Format::json)
      json.push_back({{"rule", name},
                      {"verdict", verdict},
                      {"plans", firing.plans},
                      {"fired", firing.fired},
                      {"wrong", firing.wrong}});
    else
      table.add({name, std::string(verdict), fmt::format("{}/{}", firing.fired, firing.plans), firing.wrong});
  }
  session::Reply reply;
  reply.output = request.format == session::Format::json
                     ? json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                     : table.print();
  if (failed > 0) {
    reply.exit_code = session::ExitCode::user_error;
    reply.complaint = fmt::format("error: {} of {} rules failed\n", failed, tested->size());
  }
  return reply;
}

}  // namespace weft::command
