#include "weft/planner/statement/rule_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/ops/communication.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/library.h"

namespace weft::planner {
namespace {

std::string list_sizes(const std::vector<std::int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

bool communicates(const plan::Graph& plan) {
  for (std::size_t n = 0; n < plan.node_count(); ++n)
    if (ops::find_communication(*plan.node(plan::NodeId(n)).op) != nullptr) return true;
  return false;
}

}  // namespace

Result<std::vector<rule::Rule>> read_rules(const std::vector<std::string>& files) {
  if (files.empty()) return rule::shipped_rules();
  std::vector<rule::Rule> rules;
  for (const std::string& path : files) {
    WEFT_TRY(read, rule::load_rules(path));
    std::ranges::move(read, std::back_inserter(rules));
  }
  WEFT_TRY_STATUS(rule::check_names(rules));
  return rules;
}

Result<rule::RuleSet> read_proven_rules(const std::vector<std::string>& files, const plan::Graph& plan,
                                        Warnings& warnings) {
  WEFT_TRY(rules, read_rules(files));
  if (!communicates(plan)) std::erase_if(rules, rule::is_distributed);
  const std::optional<rule::ProofStore> store = proof_store("", warnings);
  return rule::load_proven(std::move(rules), store ? &*store : nullptr);
}

Result<const rule::Rule*> find_rule(const std::vector<rule::Rule>& rules, std::string_view name) {
  const auto found = std::ranges::find(rules, name, &rule::Rule::name);
  if (found != rules.end()) return &*found;
  std::vector<std::string_view> names;
  for (const rule::Rule& rule : rules) names.push_back(rule.name);
  std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("no such rule: {}", name),
                    hint.empty() ? "weft rules list names them" : std::move(hint));
}

std::optional<rule::ProofStore> proof_store(const std::string& folder, Warnings& warnings) {
  const std::string path = folder.empty() ? rule::default_proof_folder() : folder;
  if (path.empty()) return std::nullopt;
  rule::ProofStore store(path);
  const Status is_private = store.check();
  warnings.add("the proof cache is neither read nor written", is_private);
  return is_private.ok() ? std::optional(std::move(store)) : std::nullopt;
}

rule::RuleProof proof_of(const rule::Rule& rule, const std::optional<rule::ProofStore>& store,
                         const rule::ProveOptions& options) {
  return rule::proof_of(rule, store ? &*store : nullptr, options);
}

std::optional<rule::Rule> as_proven(const rule::Rule& rule, Warnings& warnings) {
  rule::RuleProof proof = proof_of(rule, proof_store("", warnings));
  if (!holds(proof.verdict)) return std::nullopt;
  rule::Rule proven = rule;
  proven.when.insert(proven.when.end(), proof.guard.begin(), proof.guard.end());
  return proven;
}

std::string describe(const rule::Counterexample& counterexample) {
  std::string text;
  if (counterexample.ranks > 0) text += fmt::format("  on {} ranks\n", counterexample.ranks);
  for (const rule::Counterexample::Input& input : counterexample.inputs) {
    text += fmt::format("  {}{}", input.name, list_sizes(input.sizes));
    // Long inputs are cut, for display.
    constexpr std::size_t kMost = 24;
    const std::size_t shown = std::min(input.values.size(), kMost);
    if (shown > 0)
      text += fmt::format(
          " = {}{}",
          fmt::join(input.values.begin(), input.values.begin() + static_cast<std::ptrdiff_t>(shown), " "),
          shown < input.values.size() ? " .." : "");
    text += '\n';
  }
  if (counterexample.left_sizes != counterexample.right_sizes && !counterexample.right_sizes.empty())
    return text + fmt::format("  left is {}, right is {}\n", list_sizes(counterexample.left_sizes),
                              list_sizes(counterexample.right_sizes));
  return text + fmt::format("  at {} left is {}, right is {}\n", list_sizes(counterexample.at),
                            counterexample.left, counterexample.right);
}

std::string describe(const rule::Rule& rule, const rule::Verdict& verdict) {
  std::string text = fmt::format("{}: {}", rule.name, rule::name(verdict.judgement));
  if (!verdict.guard.empty()) text += fmt::format(" when {}", verdict.guard);
  if (holds(verdict)) {
    text += fmt::format(", {}", rule::name(verdict.rounding));
    if (verdict.rounding_bound > 0) text += fmt::format(", at most {:.0e} apart", verdict.rounding_bound);
    if (const std::string range = print(verdict.range); !range.empty()) text += fmt::format("; {}", range);
    return text;
  }
  if (!verdict.reason.empty()) text += fmt::format(": {}", verdict.reason);
  for (const rule::Counterexample& counterexample : verdict.counterexamples) {
    text += '\n';
    text += describe(counterexample);
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::optional<rule::Rule> prove_once(const Knowledge& state, const rule::Rule& rule) {
  const std::string text = rule::print(rule);
  if (const auto known = state.proven_rules.find(text); known != state.proven_rules.end())
    return known->second;
  return state.proven_rules.emplace(text, as_proven(rule, state.warnings)).first->second;
}

}  // namespace weft::planner
