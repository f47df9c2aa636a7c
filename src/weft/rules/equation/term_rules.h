// weft/rules/equation/term_rules.h -- proven equations between terms, used to tell which terms need not be built.
//
//   kept:   ewadd(smul(x, c), smul(y, c))  ->  smul(ewadd(x, y), c)
//   asked:  ewadd(smul(a1, c1), smul(relu(a2), c1))?     yes: it is smul(ewadd(a1, relu(a2)), c1)
//
// The inputs of a kept equation are variables: they match any term, the same one wherever they occur.
// An equation that leads to a smaller term (see TermTable::compare) rewrites; one whose sides cannot be
// told apart by size rewrites where its instance happens to shrink, as x + (y + z) = y + (x + z) does.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/rules/equation/meaning.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

// A term on given operands with its types worked out; false where it is ill-typed.
bool build(const TermTable& terms, Meaning& meaning, std::uint16_t head, std::uint8_t result,
           std::array<TermId, 2> operands, Term& term, std::array<TypeId, 2>& types);

class TermRules {
 public:
  TermRules(TermTable& terms, Meaning& meaning, std::span<const TypeId> input_types);

  // From one stored term to another, in this direction only. Ignored where the right side has an input
  // that the left has not. `same_joints`: a split cannot tell the two apart.
  void add(TermId from, TermId to, bool same_joints);

  enum class Effect : std::uint8_t {
    none,
    at_root,    // equal to a smaller term in numbers, though a split might tell them apart
    everywhere  // equal to a smaller term in whatever it is used
  };
  // Looks at the outermost operation only: operands are taken to be as small as they can be.
  Effect effect(Term term);

  std::size_t size() const { return count_; }

 private:
  struct Pattern {
    TermId from, to;  // of patterns_
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
  std::vector<std::vector<Pattern>> by_head_;  // two for each head: by result
  std::array<TermId, 64> bindings_{};
  std::size_t count_ = 0;
};

}  // namespace weft::equation
