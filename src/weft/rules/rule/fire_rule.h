// weft/rules/rule/fire_rule.h -- lets a rule fire on plans drawn for it, through the same doors as any search.
//
//   draw an instance -> a plan of its left side -> the automaton finds it -> the draft rewrites it
//     -> the rewritten plan computes what the plan computed
//
// A proof says that the two sides are equal; this says that the matcher knows the left side when it sees it,
// and that what it puts in is the right side.
#pragma once
#include <cstdint>
#include <string>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct Firing {
  std::int32_t plans = 0;  // drawn
  std::int32_t fired = 0;  // of them, those in which the rule was found and applied, and all was well
  std::string wrong;       // what went wrong first; empty when nothing did
};

Firing fire_rule(const Rule& rule, std::int32_t plans, std::uint64_t seed);

}  // namespace weft::rule
