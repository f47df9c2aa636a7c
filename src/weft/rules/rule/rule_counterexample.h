// weft/rules/rule/rule_counterexample.h -- finds the smallest case in which a rule fails.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/rule_guard.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// Searches the failures in `judged` and more instances with small sizes. The values are real
// numbers on which the two sides differ, small ones if possible.
// REQUIRES: one of `judged` is not good.
Counterexample find_counterexample(const Rule& rule, std::span<const JudgedInstance> judged, Random& random);

// The counterexample of that run. REQUIRES: run.difference
Counterexample counterexample_of(const Rule& rule, const RuleInstance& instance, const RealRun& run);

}  // namespace weft::rule
