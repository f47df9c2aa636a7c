// weft/rules/rule/rule_guard.h -- finds the guard that separates a rule's successes and failures.
//
//   conv2d(x, v, groups=g), conv2d(x, w, groups=g)  ->  one conv2d     fails where g > 1
//   found: g = 1
//
// Candidates are comparisons of the sizes of the inputs, the rule's numbers, small literals and
// mesh sizes, and whether two index variables are distinct. The smallest conjunction of up to three
// that excludes every failure and keeps most of the successes is proposed; the caller proves it on
// fresh instances.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {

struct JudgedInstance {
  RuleInstance instance;
  bool good = false;   // both sides are equal there
  bool alone = false;  // equal on real numbers only; the sides differ over the field
  RealEvidence real = {};
};

// nullopt if no such conjunction keeps at least a twentieth of the successes.
std::optional<std::vector<Condition>> find_guard(const Rule& rule, std::span<const JudgedInstance> judged);

}  // namespace weft::rule
