// weft/rules/rule/rule_counterexample.h -- the smallest case found in which a rule fails.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/rule_guard.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// Looks among the failures in `judged` and among more instances of small sizes. Its values are real numbers on
// which the two sides differ, small ones if such will do.
// REQUIRES: one of `judged` is not good.
Counterexample find_counterexample(const Rule& rule, std::span<const JudgedInstance> judged, Random& random);

// That run of that instance. REQUIRES: run.difference
Counterexample counterexample_of(const Rule& rule, const RuleInstance& instance, const RealRun& run);

}  // namespace weft::rule
