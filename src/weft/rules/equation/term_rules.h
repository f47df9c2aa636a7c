// weft/rules/equation/term_rules.h -- proven equations as rewrites that prune the enumeration.
//
//   kept:   ewadd(smul(x, c), smul(y, c))  ->  smul(ewadd(x, y), c)
//   query:  ewadd(smul(a1, c1), smul(relu(a2), c1))?     rewritten to smul(ewadd(a1, relu(a2)), c1)
//
// The inputs of a kept equation are variables: they match any term, the same one wherever they
// occur. An equation whose one side is always smaller (see TermTable::compare) always rewrites. If
// neither side is, it rewrites where the instance becomes smaller, as x + (y + z) = y + (x + z)
// does.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/rules/equation/meaning.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

// Makes a term on the given operands and infers its types; false if it is ill-typed.
bool build(const TermTable& terms, Meaning& meaning, std::uint16_t head, std::uint8_t result,
           std::array<TermId, 2> operands, Term& term, std::array<TypeId, 2>& types);

class TermRules {
 public:
  TermRules(TermTable& terms, Meaning& meaning, std::span<const TypeId> input_types);

  // Adds a rewrite between stored terms, in this direction only. Ignored if `to` has an input that
  // `from` lacks. `same_joints`: a split cannot distinguish the two.
  void add(TermId from, TermId to, bool same_joints);

  enum class Effect : std::uint8_t {
    none,
    at_root,    // numerically equal to a smaller term, but a split might distinguish them
    everywhere  // equal to a smaller term in any context
  };
  // Matches at the outermost operation only: operands are assumed to be rewritten already.
  Effect effect(Term term);

  std::size_t size() const { return count_; }

 private:
  struct Pattern {
    TermId from, to;  // ids in patterns_
    bool same_joints;
  };
  struct Pending {
    struct Pair {
      TermId pattern, candidate;
    };
    std::array<Pair, 2 * kMostOperators> pairs{};
    std::size_t count = 0;
  };
  bool solve(Pending pending, const Pattern& rule, const Term& subject);
  bool solve_operands(const Pending& pending, const Term& left, const Term& right, const Pattern& rule,
                      const Term& subject);
  bool shrinks(const Pattern& rule, const Term& subject);
  bool instantiate(TermId pattern, TermId& made);
  TermId copy(TermId id);

  TermTable& terms_;
  Meaning& meaning_;
  TermTable patterns_;
  std::vector<std::vector<Pattern>> by_head_;  // two per head: by result
  std::array<TermId, 64> bindings_{};
  std::size_t count_ = 0;
};

}  // namespace weft::equation
