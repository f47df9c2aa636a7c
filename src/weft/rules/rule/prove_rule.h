// weft/rules/rule/prove_rule.h -- judges a rule over many instances, and finds the guard it needs.
//
// The cases of judge.h are instances (instance.h). Both sides are run over the prime field on
// random values and on real numbers chosen to distinguish them (run_instance.h), and rule_guard.h
// looks for guards.
//
// If the right side is ill-typed at an instance (an operator rejects its operands), the rule fails
// there too: a rule must state everything it needs in its guard.
#pragma once
#include "weft/rules/rule/judge.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Part of the key of stored proofs. Increment it when a change to the prover may change a verdict;
// stored proofs are then made again.
constexpr std::uint64_t kProverVersion = 6;

struct RuleProof {
  Verdict verdict;
  std::vector<Condition> guard;  // for a guarded rule: conditions to add to its `when`
};

RuleProof prove(const Rule& rule, const ProveOptions& options = {});

}  // namespace weft::rule
