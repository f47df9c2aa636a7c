// weft/rules/equation/sieve.h -- judges candidates, smallest first, and keeps the new rules.
//
//   same rule under other names?  ->  follows from kept rules?  ->  proven?  ->  kept
//
// The first test costs a microsecond, the last a few milliseconds. A guarded rule is kept if
// neither the proven nor the guarded rules kept before imply it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/rules/equation/follows.h"
#include "weft/rules/equation/generate.h"
#include "weft/rules/equation/term.h"
#include "weft/rules/equation/term_rules.h"

namespace weft::equation {

class Sieve {
 public:
  Sieve(const GenerateOptions& options, TermTable& terms, TermRules& rewritings, Generated& generated);

  enum class Outcome : std::uint8_t { equal, equal_under_guard, unequal };

  // `outputs`: for each output a pair of stored terms, the larger first.
  Outcome judge(std::span<const std::array<TermId, 2>> outputs);

  // Proves that operations declared commutative are, which terms assume. These rules come first in
  // the list.
  Status prove_commutative();

  // Sorts the rules kept, smallest first, and drops those that follow from smaller ones.
  void drop_implied_rules();

 private:
  Outcome judge(const Equation& equation, std::span<const std::array<TermId, 2>> outputs);
  void keep(const Equation& equation, rule::Verdict verdict, std::span<const std::array<TermId, 2>> outputs);

  const GenerateOptions& options_;
  TermTable& terms_;
  TermRules& rewritings_;
  Generated& generated_;
  std::vector<GeneratedRule> commutative_;
  std::unordered_map<Digest, Outcome> judged_;
  Theory proven_, all_;
};

}  // namespace weft::equation
