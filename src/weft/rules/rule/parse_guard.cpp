#include "weft/rules/rule/parse_guard.h"

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"

namespace weft::rule {

Result<std::vector<Condition>> parse_guard(std::string_view text, const Rule& rule) {
  Rule bare = rule;
  bare.when.clear();
  WEFT_TRY(parsed, parse_rules(fmt::format("{}  when  {}\n", print(bare), text), rule.file, ops::all()));
  if (parsed.size() != 1) return user_error(fmt::format("a guard cannot contain a rule: {}", text));
  return std::move(parsed[0].when);
}

}  // namespace weft::rule
