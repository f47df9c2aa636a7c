// weft/planner/statement/rule_source.h -- rules from files or as shipped, and the proofs they rest on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/device.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/planner/statement/knowledge.h"
#include "weft/planner/statement/warnings.h"
#include "weft/rules/rule/proof_store.h"
#include "weft/rules/rule/rule.h"

namespace weft::planner {

constexpr std::int64_t kLargestRuleFile = std::int64_t{64} << 20;

// The rules of these files and folders together; without any, the shipped ones.
Result<std::vector<rule::Rule>> read_rules(const std::vector<std::string>& files);

// Those of them that may fire in this plan: proven, or guarded and then with their guard; and those that are
// refused. Rules about several ranks are left out where nothing in the plan communicates.
Result<rule::RuleSet> read_proven_rules(const std::vector<std::string>& files, const plan::Graph& plan,
                                        Warnings& warnings);

Result<const rule::Rule*> find_rule(const std::vector<rule::Rule>& rules, std::string_view name);

// Proofs kept in this folder; where it is empty, in the user's cache, if there is one. None where others may
// have written there, with a warning.
std::optional<rule::ProofStore> proof_store(const std::string& folder, Warnings& warnings);
rule::RuleProof proof_of(const rule::Rule& rule, const std::optional<rule::ProofStore>& store,
                         const rule::ProveOptions& options = {});

// The rule as it may fire: with the guard that its proof wants, or not at all.
std::optional<rule::Rule> as_proven(const rule::Rule& rule, Warnings& warnings);

// The rule as it may fire, nothing where it is not proven; asked for once.
std::optional<rule::Rule> prove_once(const Knowledge& state, const rule::Rule& rule);

// "merge_products: guarded: size(x, n) = size(w, n)"; a refuted rule's counterexample below it.
std::string describe(const rule::Rule& rule, const rule::Verdict& verdict);
std::string describe(const rule::Counterexample& counterexample);

}  // namespace weft::planner
