#include "weft/planner/search/rewrite/rule_book.h"

namespace weft::search {
namespace {

std::vector<rule::Rule> of_kind(std::span<const rule::Rule> rules, rule::Kind kind) {
  std::vector<rule::Rule> chosen;
  for (const rule::Rule& rule : rules)
    if (rule.kind == kind) chosen.push_back(rule);
  return chosen;
}

}  // namespace

RuleBook::RuleBook(std::span<const rule::Rule> rules)
    : normalize_(of_kind(rules, rule::Kind::normalize)),
      explore_(of_kind(rules, rule::Kind::explore)),
      normalizing_(normalize_),
      exploring_(explore_) {
  Hasher hasher;
  for (const rule::Rule& rule : rules) hasher.text(rule::print(rule));
  digest_ = hasher.digest();
}

}  // namespace weft::search
