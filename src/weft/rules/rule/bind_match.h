// weft/rules/rule/bind_match.h -- checks and binds a rule where its structure was found.
//
// The structure is operators and what they read. Beyond that, checks operator variables, index
// variables (see bind_indices.h), attributes, layouts and the guard, in this order. The first that
// fails is reported as the reason.
#pragma once
#include <string>

#include "weft/rules/rule/bind_indices.h"
#include "weft/rules/rule/match.h"

namespace weft::rule {

class MatchBinder {
 public:
  explicit MatchBinder(const Rule& rule);  // REQUIRES: the rule outlives it

  // Fills `match.bindings` from its nodes and values, which match the rule's structure and
  // literals. If that fails, returns false and sets `because` unless null.
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
