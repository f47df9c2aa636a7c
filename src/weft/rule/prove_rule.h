// weft/rule/prove_rule.h -- judges a rule over many instances, and finds the guard it needs.
//
//   draw instances (instance.h) -> run both sides over the prime field on random values (run_instance.h)
//     all equal         proven, with the probability that a false rule got here (error_bound.h)
//     some not          find a guard that tells them apart (rule_guard.h), prove that on fresh instances:
//       one does        guarded
//       no guard does   refuted, with the smallest case found
//
// Where a right side does not fit at an instance (an operator refuses its operands), the rule fails there as
// well: a rule says all it needs in its guard.
#pragma once
#include "weft/rule/prove_equation.h"
#include "weft/rule/rule.h"
#include "weft/rule/verdict.h"

namespace weft::rule {

// What proofs rest on besides the rule and its operators. A change to the prover that may change a verdict
// counts this up, and stored proofs are made anew.
constexpr std::uint64_t kProverVersion = 2;

struct RuleProof {
  Verdict verdict;
  std::vector<Condition> guard;  // of a guarded rule: what to add to its `when`
};

RuleProof prove(const Rule& rule, const ProveOptions& options = {});

}  // namespace weft::rule
