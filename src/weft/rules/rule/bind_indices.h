// weft/rules/rule/bind_indices.h -- binds a rule's index variables to the plan's indices.
//
//   given x[B, K], v[K, n], w[K, m]      p = contract(x, v, to=[B, n])   q = contract(x, w, to=[B, m])
//
//   plan x[b,s,d], v[d,f], w[d,f], p[b,s,f], q[b,s,f]
//     b, s are in x, p, q          exactly where B is       B = [b, s]
//     d    is in x, v, w           exactly where K is       K = [d]
//     f    is in v, p and w, q     where n is, or m is      n = f, m = f
//
// Every index is covered exactly: each value that has it has exactly one of its variables. If
// attributes (along=n) or inputs given in order bind a variable, it has that binding. Of several
// covers, the one with fewest variables is chosen, then the first in order of declaration, such
// that every lower-case variable gets one index. Indices are assigned in memory order.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

class IndexBinder {
 public:
  explicit IndexBinder(const Rule& rule);  // REQUIRES: the rule outlives it

  // Sets `match.bindings.indices` from its nodes and values. If that fails, returns false and sets
  // `because` unless null.
  bool bind(const Draft& draft, Match& match, std::string* because) const;

 private:
  // A list of index variables in the rule that corresponds to a list of indices in the plan.
  struct Stated {
    std::uint16_t node = 0, attribute = 0;  // a node of the left and its attribute, or
    bool is_input = false;                  // `node` is an input given in order
    bool ordered = true;                    // false: the lists are equal as sets
    const IndexList* list = nullptr;
  };
  // Variables that never share a value, and the union of the values they occur in.
  struct Cover {
    std::uint64_t values = 0, variables = 0;  // bit masks
  };
  using Symbols = InlineVector<Symbol, 8>;
  struct Found;
  class Search;

  void find_covers();
  Symbols stated_indices(const Draft& draft, const Match& match, const Stated& stated) const;
  // Binds the variables of an ordered list in `bound` and adds them to the bit mask `known`.
  bool align(const Stated& stated, const Symbols& symbols, std::vector<std::vector<Symbol>>& bound,
             std::uint64_t& known) const;
  bool decline(const Draft& draft, const Stated& stated, const Symbols& found, std::string* because) const;

  const Rule* rule_;
  bool bindable_ = true;
  std::vector<const IndexList*> lists_;  // by value; null if unknown
  std::vector<std::uint64_t> masks_;     // by variable: bit mask of the values that have it
  std::uint64_t singles_ = 0;            // lower-case variables that occur in values
  std::vector<Stated> stated_;
  std::vector<Cover> covers_;  // sorted by values, then fewest variables, then as declared
};

}  // namespace weft::rule
