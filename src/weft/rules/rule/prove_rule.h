// weft/rules/rule/prove_rule.h -- judges a rule over many instances, and finds the guard it needs.
//
// The cases of judge.h are instances (instance.h): both sides are run over the prime field on random values and on
// real numbers that were chosen to tell them apart (run_instance.h), and rule_guard.h looks for guards.
//
// Where a right side does not fit at an instance (an operator refuses its operands), the rule fails there as
// well: a rule says all it needs in its guard.
#pragma once
#include "weft/rules/rule/judge.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// What proofs rest on besides the rule and its operators. A change to the prover that may change a verdict
// counts this up, and stored proofs are made anew.
constexpr std::uint64_t kProverVersion = 6;

struct RuleProof {
  Verdict verdict;
  std::vector<Condition> guard;  // of a guarded rule: what to add to its `when`
};

RuleProof prove(const Rule& rule, const ProveOptions& options = {});

}  // namespace weft::rule
