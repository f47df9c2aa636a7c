// weft/rules/rule/bind_indices.h -- which indices of the plan a rule's index variables stand for at a match.
//
//   given x[B, K], v[K, n], w[K, m]      p = contract(x, v, to=[B, n])   q = contract(x, w, to=[B, m])
//
//   plan x[b,s,d], v[d,f], w[d,f], p[b,s,f], q[b,s,f]
//     b, s are in x, p, q          just where B is          B = [b, s]
//     d    is in x, v, w           just where K is          K = [d]
//     f    is in v, p and w, q     where n is, or m is      n = f, m = f
//
// Every index is covered exactly: each value that has it has just one of its variables. Where attributes
// (along=n) or inputs given in order say which index a variable is, it is that one. Of several covers
// the one with fewest variables is taken, then the first in the order of declaration, such that every
// lower-case variable gets one index; indices are taken in memory order.
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

  // Gives `match.bindings.indices` from its nodes and values. Otherwise false, and why, where asked.
  bool bind(const Draft& draft, Match& match, std::string* because) const;

 private:
  // A list of index variables beside a list of indices.
  struct Stated {
    std::uint16_t node = 0, attribute = 0;  // of the left; or an input given in order:
    bool is_input = false;                  // `node` is the input then
    bool ordered = true;                    // else they are the same set
    const IndexList* list = nullptr;
  };
  // Variables no two of which occur in one value, and the values they occur in together.
  struct Cover {
    std::uint64_t values = 0, variables = 0;  // as bits
  };
  using Symbols = InlineVector<Symbol, 8>;
  struct Found;
  class Search;

  void find_covers();
  Symbols stated_indices(const Draft& draft, const Match& match, const Stated& stated) const;
  // What the ordered lists say, put in `bound`: the variables that are known now, as bits.
  bool align(const Stated& stated, const Symbols& symbols, std::vector<std::vector<Symbol>>& bound,
             std::uint64_t& known) const;
  bool decline(const Draft& draft, const Stated& stated, const Symbols& found, std::string* because) const;

  const Rule* rule_;
  bool bindable_ = true;
  std::vector<const IndexList*> lists_;  // by value; null where nothing is known
  std::vector<std::uint64_t> masks_;     // by variable: the values that have it
  std::uint64_t singles_ = 0;            // lower-case variables that values have
  std::vector<Stated> stated_;
  std::vector<Cover> covers_;  // by values; then fewest variables first, then as declared
};

}  // namespace weft::rule
