#include "weft/rules/rule/proof_text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/rules/rule/parse_guard.h"

namespace weft::rule {
namespace {

using Json = nlohmann::json;

constexpr std::array kJudgements = {Judgement::proven,  Judgement::rounded,   Judgement::guarded,
                                    Judgement::refuted, Judgement::ill_typed, Judgement::undecided};
constexpr std::array kRoundings = {Rounding::exact, Rounding::reassociates, Rounding::changes};

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<Enum, N>& all, std::string_view text) {
  for (const Enum each : all)
    if (name(each) == text) return each;
  return std::nullopt;
}

Json to_json(const Counterexample& found) {
  Json inputs = Json::array();
  for (const Counterexample::Input& input : found.inputs)
    inputs.push_back({{"name", input.name}, {"sizes", input.sizes}, {"values", input.values}});
  return {{"inputs", inputs},
          {"ranks", found.ranks},
          {"output", found.output},
          {"at", found.at},
          {"left", found.left},
          {"right", found.right},
          {"left_sizes", found.left_sizes},
          {"right_sizes", found.right_sizes}};
}

Counterexample counterexample_from(const Json& json) {
  Counterexample result;
  for (const Json& input : json.at("inputs"))
    result.inputs.push_back({input.at("name"), input.at("sizes"), input.at("values")});
  json.at("ranks").get_to(result.ranks);
  json.at("output").get_to(result.output);
  json.at("at").get_to(result.at);
  json.at("left").get_to(result.left);
  json.at("right").get_to(result.right);
  json.at("left_sizes").get_to(result.left_sizes);
  json.at("right_sizes").get_to(result.right_sizes);
  return result;
}

std::optional<RuleProof> proof_from(const Json& json, const Digest& key, const Rule& rule) {
  RuleProof proof;
  Verdict& verdict = proof.verdict;
  const auto judgement = find(kJudgements, json.at("judgement").get<std::string>());
  const auto rounding = find(kRoundings, json.at("rounding").get<std::string>());
  if (!judgement || !rounding || json.at("key").get<std::string>() != key.hex()) return std::nullopt;
  verdict.judgement = *judgement;
  verdict.rounding = *rounding;
  json.at("guard").get_to(verdict.guard);
  json.at("error_probability").get_to(verdict.error_probability);
  json.at("unseen_share").get_to(verdict.unseen_share);
  json.at("rounding_bound").get_to(verdict.rounding_bound);
  // An unbounded range is stored with end 0, since JSON has no infinity.
  json.at("range").at(0).get_to(verdict.range.least);
  if (const double most = json.at("range").at(1); most > 0) verdict.range.most = most;
  json.at("range").at(2).get_to(verdict.range.finite_only);
  json.at("shapes").get_to(verdict.shapes);
  json.at("real_runs").get_to(verdict.real_runs);
  json.at("reason").get_to(verdict.reason);
  for (const Json& found : json.at("counterexamples"))
    verdict.counterexamples.push_back(counterexample_from(found));
  if (verdict.guard.empty()) return proof;
  auto guard = parse_guard(verdict.guard, rule);
  if (!guard.ok()) return std::nullopt;
  proof.guard = std::move(guard).value();
  return proof;
}

}  // namespace

std::string print_proof(const Digest& key, const RuleProof& proof) {
  const Verdict& verdict = proof.verdict;
  Json found = Json::array();
  for (const Counterexample& each : verdict.counterexamples) found.push_back(to_json(each));
  const Json json = {{"key", key.hex()},
                     {"judgement", name(verdict.judgement)},
                     {"rounding", name(verdict.rounding)},
                     {"guard", verdict.guard},
                     {"error_probability", verdict.error_probability},
                     {"unseen_share", verdict.unseen_share},
                     {"rounding_bound", verdict.rounding_bound},
                     {"range",
                      {verdict.range.least, std::isinf(verdict.range.most) ? 0.0 : verdict.range.most,
                       verdict.range.finite_only}},
                     {"shapes", verdict.shapes},
                     {"real_runs", verdict.real_runs},
                     {"reason", verdict.reason},
                     {"counterexamples", found}};
  const std::string body = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return fmt::format("{}\n{}\n", Hasher().text(body).digest().hex(), body);
}

std::optional<RuleProof> read_proof(std::string_view text, const Digest& key, const Rule& rule) {
  const std::size_t end = text.find('\n');
  if (end == text.npos || text.back() != '\n') return std::nullopt;
  const std::string_view body = text.substr(end + 1, text.size() - end - 2);
  if (text.substr(0, end) != Hasher().text(body).digest().hex()) return std::nullopt;
  try {
    return proof_from(Json::parse(body), key, rule);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace weft::rule
