// weft/rules/rule/bind_match.h -- whether a rule holds where its structure was found, and with what bindings.
//
// Structure is operators and what they read. Beyond that: operator variables, index variables (see
// bind_indices.h), attributes, layouts and the guard, in this order. The first that fails is the reason why
// the rule declined.
#pragma once
#include <string>

#include "weft/rules/rule/bind_indices.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {

class MatchBinder {
 public:
  explicit MatchBinder(const Rule& rule);  // REQUIRES: the rule outlives it

  // Fills `match.bindings` from its nodes and values, which have the rule's structure and literals.
  // Otherwise false, and why, where asked.
  bool bind(const Draft& draft, const Placement& placement, Match& match, std::string* because) const;

 private:
  bool bind_operators(const Draft& draft, Match& match, std::string* because) const;
  bool bind_variables(const Draft& draft, Match& match, std::vector<bool>& bound, std::string* because) const;
  bool check_numbers(const Draft& draft, const Placement& placement, const Match& match,
                     std::string* because) const;
  bool check_layouts(const Draft& draft, const Placement& placement, Match& match, std::vector<bool>& bound,
                     std::string* because) const;
  bool check_guard(const Draft& draft, const Placement& placement, const Match& match,
                   std::string* because) const;

  const Rule* rule_;
  IndexBinder indices_;
};

}  // namespace weft::rule
