// weft/planner/search/rewrite/rule_book.h -- rules compiled for search, by kind, with a digest.
#pragma once
#include <span>
#include <vector>

#include "weft/base/hash.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

class RuleBook {
 public:
  explicit RuleBook(std::span<const rule::Rule> rules);
  RuleBook(const RuleBook&) = delete;
  RuleBook& operator=(const RuleBook&) = delete;

  const rule::Automaton& normalizing() const { return normalizing_; }
  const rule::Automaton& exploring() const { return exploring_; }
  // Of the text of all rules, in order, which decides between equally good plans.
  const Digest& digest() const { return digest_; }

 private:
  std::vector<rule::Rule> normalize_, explore_;
  rule::Automaton normalizing_, exploring_;
  Digest digest_;
};

}  // namespace weft::search
