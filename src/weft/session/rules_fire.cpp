// weft rules test: every rule proven anew, and fired on plans drawn for it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/explain/table.h"
#include "weft/rule/fire_rule.h"
#include "weft/session/reply.h"
#include "weft/session/rule_source.h"
#include "weft/session/rules.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kPlans = 20;
constexpr std::uint64_t kSeed = 0xf12e;

}  // namespace

Reply run(const RulesTest& request) {
  const auto rules = read_rules(request.files);
  if (!rules.ok()) return complain(rules.error());
  explain::Table table({{"rule"}, {"verdict"}, {"fired", explain::Align::right}, {"wrong"}});
  Json json = Json::array();
  int failed = 0;
  for (const rule::Rule& rule : *rules) {
    const rule::RuleProof proof = rule::prove(rule);
    rule::Rule firing_rule = rule;
    firing_rule.when.insert(firing_rule.when.end(), proof.guard.begin(), proof.guard.end());
    const rule::Firing firing = rule::fire_rule(firing_rule, kPlans, kSeed);
    const bool good = holds(proof.verdict) && firing.wrong.empty();
    failed += good ? 0 : 1;
    const std::string_view verdict = rule::name(proof.verdict.judgement);
    if (request.format == Format::json)
      json.push_back({{"rule", rule.name},
                      {"verdict", verdict},
                      {"plans", firing.plans},
                      {"fired", firing.fired},
                      {"wrong", firing.wrong}});
    else
      table.add(
          {rule.name, std::string(verdict), fmt::format("{}/{}", firing.fired, firing.plans), firing.wrong});
  }
  Reply reply;
  reply.output = request.format == Format::json
                     ? json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                     : table.print();
  if (failed > 0) {
    reply.exit_code = ExitCode::user_error;
    reply.complaint = fmt::format("error: {} of {} rules failed\n", failed, rules->size());
  }
  return reply;
}

}  // namespace weft::session
