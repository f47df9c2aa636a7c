// weft/planner/search/rewrite/rule_book.h -- rules made ready for a search: by kind, compiled, and named by one digest.
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
  // Of the rules' text, in order: which of two equally good plans is found depends on it.
  const Digest& digest() const { return digest_; }

 private:
  std::vector<rule::Rule> normalize_, explore_;
  rule::Automaton normalizing_, exploring_;
  Digest digest_;
};

}  // namespace weft::search
