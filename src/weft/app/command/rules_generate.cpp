// weft rules generate: finds rules, compares them with known ones and writes the usable ones.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/rules.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/formats/rules_jsonl.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/rules/equation/coverage.h"
#include "weft/rules/equation/generate.h"
#include "weft/rules/equation/rank.h"
#include "weft/rules/equation/rule_from_equation.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;
using equation::GeneratedRule;

// How well the generated rules cover the equations of one file.
struct Comparison {
  std::string path;
  std::map<equation::Coverage, int> how;
  std::vector<std::pair<std::string, std::string>> missing;  // id, why
  int false_ones = 0;                                        // refuted or ill-typed: must not be found
};

Result<Comparison> compare_coverage(const std::string& path, const equation::CoverageBy& found,
                                    equation::Theory& known) {
  WEFT_TRY(text, read_file(path, planner::kLargestRuleFile));
  Comparison comparison{path, {}, {}, 0};
  formats::RuleLines lines(text);
  while (const auto line = lines.next()) {
    if (!line->equation.ok()) continue;
    const equation::Equation& equation = *line->equation;
    if (!holds(equation::prove(equation))) {
      ++comparison.false_ones;
      continue;
    }
    known.add(equation, true, true);
    const equation::Covered covered = found.cover(equation);
    if (covered.how == equation::Coverage::missing)
      comparison.missing.emplace_back(equation.id, equation::print(equation));
    ++comparison.how[covered.how];
  }
  return comparison;
}

// The rules as text. Equations that plans have no operators for are kept as comments.
struct WrittenRules {
  std::string text;
  int rules = 0, same_by_names = 0, remarks = 0;
};

// The equation as the text of a rule, proven again. Empty if it is trivial over named indices.
Result<std::optional<std::string>> as_rule(const GeneratedRule& found, const std::string& name) {
  Error last = user_error("not proven as a rule for plans");
  for (const equation::LocalValues local : {equation::LocalValues::partial, equation::LocalValues::varying}) {
    WEFT_TRY(text, equation::rule_from_equation(found.equation, name, equation::print(found.equation),
                                                "weft rules generate", local));
    if (!text) return std::optional<std::string>();
    auto parsed = rule::parse_rules(*text, name, ops::all());
    if (!parsed.ok()) {
      last = std::move(parsed).error();
      continue;
    }
    rule::Rule& rule = parsed->front();
    const rule::RuleProof proof = rule::prove(rule);
    if (!holds(proof.verdict)) continue;
    rule.when.insert(rule.when.end(), proof.guard.begin(), proof.guard.end());
    return std::optional(rule::print(rule));
  }
  return last;
}

WrittenRules write_rules(const std::vector<GeneratedRule>& rules, const equation::OperatorSet& set) {
  WrittenRules written;
  written.text =
      fmt::format("# Generated from the operator set {}: every rule below was proven.\n", set.name);
  std::string remarks;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto text = as_rule(rules[i], fmt::format("{}_{}", set.name, i + 1));
    if (text.ok() && !*text) {
      ++written.same_by_names;
    } else if (text.ok()) {
      ++written.rules;
      written.text += "\n" + **text;
    } else {
      ++written.remarks;
      remarks +=
          fmt::format("#   {}{}\n#     {}\n", equation::print(rules[i].equation),
                      rules[i].verdict.guard.empty() ? "" : fmt::format("   when {}", rules[i].verdict.guard),
                      text.error().message);
    }
  }
  if (!remarks.empty()) written.text += "\n# Proven by position, but cannot be stated for plans:\n" + remarks;
  return written;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Result<std::string> generate(const RulesGenerate& request) {
  equation::GenerateOptions options;
  WEFT_TRY(set, equation::preset(request.operators));
  options.operators = set;
  options.most_operators = request.most_operators;
  const Stopwatch clock;
  std::string phase;
  std::int32_t level = 0;
  double begin = 0;
  if (request.on_progress)
    options.progress = [&](const equation::GenerateProgress& at) {
      // A phase's speed gives its remaining time; the time of later phases is unknown.
      explain::Progress progress;
      progress.model = fmt::format("{} {}", at.phase, at.level);
      progress.step = static_cast<std::int64_t>(1000 * at.done);
      progress.steps = 1000;
      progress.has_loss = false;
      if (at.phase != phase || at.level != level) {
        phase = at.phase;
        level = at.level;
        begin = clock.seconds();
      }
      if (at.done > 0.01) progress.seconds_left = (clock.seconds() - begin) * (1 - at.done) / at.done;
      request.on_progress(progress);
    };
  options.interrupted = request.interrupted;
  WEFT_TRY(generated, equation::generate(options));
  const double seconds = clock.seconds();

  equation::Theory known;
  std::vector<Comparison> comparisons;
  if (!request.against.empty()) {
    const equation::CoverageBy coverage(generated.rules);
    for (const std::string& path : request.against) {
      WEFT_TRY(comparison, compare_coverage(path, coverage, known));
      comparisons.push_back(std::move(comparison));
    }
  }
  const auto best = equation::most_useful(generated.rules, known, static_cast<std::size_t>(request.best));
  std::optional<WrittenRules> written;
  if (!request.to.empty()) {
    written = write_rules(generated.rules, set);
    WEFT_TRY_STATUS(write_file_atomically(request.to, written->text));
  }

  const equation::GenerateCounts& counts = generated.counts;
  if (request.format == session::Format::json) {
    Json json = {{"operators", set.name},
                 {"most_operators", request.most_operators},
                 {"rules", generated.rules.size()},
                 {"proven", counts.proven},
                 {"guarded", counts.guarded},
                 {"refuted", counts.refuted},
                 {"graphs", counts.graphs},
                 {"evaluated", counts.evaluated},
                 {"candidates", counts.candidates},
                 {"table_bytes", counts.table_bytes},
                 {"seconds", seconds}};
    json["best"] = Json::array();
    for (const std::size_t i : best)
      json["best"].push_back({{"rule", equation::print(generated.rules[i].equation)},
                              {"guard", generated.rules[i].verdict.guard},
                              {"gain", generated.rules[i].gain}});
    json["against"] = Json::array();
    for (const Comparison& comparison : comparisons) {
      Json row = {{"file", comparison.path}};
      for (const auto& [how, count] : comparison.how) row[std::string(equation::name(how))] = count;
      row["false"] = comparison.false_ones;
      row["missing_rules"] = Json::array();
      for (const auto& [id, text] : comparison.missing) row["missing_rules"].push_back(id);
      json["against"].push_back(std::move(row));
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string out =
      fmt::format("{} rules of at most {} operators ({}): {} proven, {} guarded\n",
                  print_exact(static_cast<std::int64_t>(generated.rules.size())), request.most_operators,
                  set.name, print_exact(counts.proven), print_exact(counts.guarded));
  out += fmt::format("{} graphs, {} run, {} candidates, {} of them refuted; tables {}; {}\n",
                     print_exact(counts.graphs), print_exact(counts.evaluated),
                     print_exact(counts.candidates), print_exact(counts.refuted),
                     print_bytes(static_cast<double>(counts.table_bytes)), print_seconds(seconds));
  for (const Comparison& comparison : comparisons) {
    out += fmt::format("\n{}:", comparison.path);
    for (const auto& [how, count] : comparison.how) out += fmt::format(" {} {},", count, equation::name(how));
    out += fmt::format(" {} false\n", comparison.false_ones);
    for (const auto& [id, text] : comparison.missing) out += fmt::format("  missing {}: {}\n", id, text);
  }
  if (!best.empty())
    out += fmt::format("\nmost useful{}:\n", request.against.empty() ? "" : " among those that are new");
  for (const std::size_t i : best)
    out += fmt::format("  {}{}\n", equation::print(generated.rules[i].equation),
                       generated.rules[i].verdict.guard.empty()
                           ? ""
                           : fmt::format("   when {}", generated.rules[i].verdict.guard));
  if (written)
    out += fmt::format("\n{}: {} rules; {} more trivial with named indices, {} not expressible for plans\n",
                       request.to, written->rules, written->same_by_names, written->remarks);
  return out;
}

}  // namespace

session::Reply run(const RulesGenerate& request) { return session::to_reply(generate(request)); }

}  // namespace weft::command
