// weft/rules/rule/check_rule.h -- static checks of a rule, without running it.
#pragma once
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Fails if the left side is not connected, an output has different indices on the two sides, a
// number uses a size that its value does not have or that is not bound, or a guard can never hold.
Status check(const Rule& rule);

// Fails if no numbers satisfy all conditions at once, as far as comparisons with literals show.
Status check_possible(const Rule& rule);

}  // namespace weft::rule
