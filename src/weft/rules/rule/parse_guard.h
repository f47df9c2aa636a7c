// weft/rules/rule/parse_guard.h -- the conditions of a guard that was stated for a rule.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// "size(x, n) = 1 and distinct(n, m)", in the names of the rule.
Result<std::vector<Condition>> parse_guard(std::string_view text, const Rule& rule);

}  // namespace weft::rule
