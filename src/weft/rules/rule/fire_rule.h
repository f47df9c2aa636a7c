// weft/rules/rule/fire_rule.h -- tests a rule end to end, with the code path that the search uses.
//
//   draw an instance -> a plan of its left side -> the automaton finds it -> the draft rewrites it
//     -> the rewritten plan computes the same as before
//
// A proof shows that the two sides are equal. This test shows that the matcher recognizes the left
// side and that the rewrite inserts the right side.
#pragma once
#include <cstdint>
#include <string>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct Firing {
  std::int32_t plans = 0;  // plans drawn
  std::int32_t fired = 0;  // plans in which the rule was found and applied correctly
  std::string wrong;       // the first problem; empty if there was none
};

Firing fire_rule(const Rule& rule, std::int32_t plans, std::uint64_t seed);

}  // namespace weft::rule
