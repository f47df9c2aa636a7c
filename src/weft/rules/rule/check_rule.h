// weft/rules/rule/check_rule.h -- mistakes that are seen from a rule alone, without running it.
#pragma once
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Fails when the left side falls into parts that share no value, an output has other indices on the right
// than on the left, a number asks for a size that its value does not have or that nothing binds, or a guard
// can never hold.
Status check(const Rule& rule);

// Fails when no numbers satisfy all conditions at once, as far as comparisons with literals tell.
Status check_possible(const Rule& rule);

}  // namespace weft::rule
