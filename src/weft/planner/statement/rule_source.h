// weft/planner/statement/rule_source.h -- rules from files or as shipped, and their proofs.
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

// The rules of these files and folders; without any, the shipped ones.
Result<std::vector<rule::Rule>> read_rules(const std::vector<std::string>& files);

// Splits them into rules that may apply to this plan, proven or with their guard, and refused ones.
// Distributed rules are left out if the plan has no communication.
Result<rule::RuleSet> read_proven_rules(const std::vector<std::string>& files, const plan::Graph& plan,
                                        Warnings& warnings);

Result<const rule::Rule*> find_rule(const std::vector<rule::Rule>& rules, std::string_view name);

// The proofs stored in this folder; if it is empty, in the user's cache, if any. None, with a
// warning, if others may have written to the folder.
std::optional<rule::ProofStore> proof_store(const std::string& folder, Warnings& warnings);
rule::RuleProof proof_of(const rule::Rule& rule, const std::optional<rule::ProofStore>& store,
                         const rule::ProveOptions& options = {});

// The rule with the guard that its proof requires; nothing if it is not proven.
std::optional<rule::Rule> as_proven(const rule::Rule& rule, Warnings& warnings);

// The same, cached per session.
std::optional<rule::Rule> prove_once(const Knowledge& state, const rule::Rule& rule);

// "merge_products: guarded when size(x, n) = size(w, n)"; followed by counterexamples if refuted.
std::string describe(const rule::Rule& rule, const rule::Verdict& verdict);
std::string describe(const rule::Counterexample& counterexample);

}  // namespace weft::planner
