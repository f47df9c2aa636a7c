// weft/rules/rule/parse_guard.h -- parses the conditions of a guard for a given rule.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// `text`: "size(x, n) = 1 and distinct(n, m)", with the names of the rule.
Result<std::vector<Condition>> parse_guard(std::string_view text, const Rule& rule);

}  // namespace weft::rule
