// weft/rule/rule_counterexample.h -- the smallest case found in which a rule fails.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rule/rule_guard.h"
#include "weft/rule/verdict.h"

namespace weft::rule {

// Looks among the failures in `judged` and among more instances of small sizes. Its values are small whole
// numbers on which the two sides differ; where they never do, and only the order of numbers or the functions
// read otherwise tell them apart, there are none and the sides are shown in the field.
// REQUIRES: one of `judged` is not good.
Counterexample find_counterexample(const Rule& rule, std::span<const JudgedInstance> judged, Random& random);

}  // namespace weft::rule
