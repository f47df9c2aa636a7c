// weft rules list and show: all rules, and one rule with its proof.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/rules.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/reply.h"
#include "weft/planner/statement/rule_source.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const rule::Rule& rule, const rule::Verdict& verdict) {
  return {{"rule", rule.name},
          {"kind", rule::name(rule.kind)},
          {"verdict", rule::name(verdict.judgement)},
          {"guard", verdict.guard},
          {"rounding", rule::name(verdict.rounding)},
          {"rounding_bound", verdict.rounding_bound},
          {"error_probability", verdict.error_probability},
          {"unseen_share", verdict.unseen_share},
          {"shapes", verdict.shapes},
          {"real_runs", verdict.real_runs},
          {"range", print(verdict.range)},
          {"why", rule.why},
          {"cite", rule.cite},
          {"file", rule.file},
          {"line", rule.line}};
}

Result<std::string> list(const RulesList& request, planner::Warnings& warnings) {
  WEFT_TRY(rules, planner::read_rules(request.files));
  const std::optional<rule::ProofStore> store = planner::proof_store(request.store, warnings);
  explain::Table table({{"rule"}, {"kind"}, {"verdict"}, {"rounding"}});
  Json json = Json::array();
  for (const rule::Rule& rule : rules) {
    const rule::Verdict verdict = planner::proof_of(rule, store).verdict;
    if (request.format == session::Format::json) {
      json.push_back(to_json(rule, verdict));
    } else {
      table.add({rule.name, std::string(rule::name(rule.kind)), std::string(rule::name(verdict.judgement)),
                 holds(verdict) ? std::string(rule::name(verdict.rounding)) : std::string()});
      table.add_below(rule.why);
    }
  }
  return request.format == session::Format::json
             ? json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
             : table.print(request.width);
}

Result<std::string> show(const RulesShow& request, planner::Warnings& warnings) {
  WEFT_TRY(rules, planner::read_rules(request.files));
  WEFT_TRY(found, planner::find_rule(rules, request.rule));
  const std::optional<rule::ProofStore> store = planner::proof_store(request.store, warnings);
  const rule::Verdict verdict = planner::proof_of(*found, store).verdict;
  if (request.format == session::Format::json) {
    Json json = to_json(*found, verdict);
    json["text"] = rule::print(*found);
    if (!verdict.counterexamples.empty())
      json["counterexample"] = planner::describe(verdict.counterexamples.front());
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::string out = fmt::format("{}\n", rule::print(*found)) +
                    explain::wrap(planner::describe(*found, verdict), request.width);
  if (holds(verdict))
    out += explain::wrap(
        fmt::format(
            "values: a false rule would have passed with probability at most {:.0e}; {} runs on reals agree\n"
            "shapes and attributes are sampled: {} tried, a failure at 1 in {:.0f} of them would have "
            "shown\n",
            verdict.error_probability, verdict.real_runs, verdict.shapes, 1 / verdict.unseen_share),
        request.width);
  out += fmt::format("{}:{}\n", found->file, found->line);
  return out;
}

}  // namespace

session::Reply run(const RulesList& request) {
  planner::Warnings warnings;
  return session::with_warnings(session::to_reply(list(request, warnings)), warnings);
}

session::Reply run(const RulesShow& request) {
  planner::Warnings warnings;
  return session::with_warnings(session::to_reply(show(request, warnings)), warnings);
}

}  // namespace weft::command
