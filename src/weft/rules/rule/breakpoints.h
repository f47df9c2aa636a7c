// weft/rules/rule/breakpoints.h -- sizes and attributes at which a rule may begin to fail.
//
//   left y = slice(x, along=n, begin=0, end=size(x, n) - size(x, n) / 7)     right y = x
//
// is true up to size 6. Numbers that a rule names, one more and one less than them, their sums and products are
// drawn as sizes, attributes and numbers of ranks, and with them a few that nobody names.
//
// A quotient of sizes is another number for every remainder: a rule must say that it comes out even, or the
// prover says so in the guard it gives.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/random.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

class Breakpoints {
 public:
  explicit Breakpoints(const Rule& rule);

  // From 1 up: mostly beside what the rule names, or else a size that is larger than those tried everywhere.
  std::int64_t size(Random& random) const;
  // Any whole number that a rule might bind.
  std::int64_t integer(Random& random) const;
  double real(Random& random) const;

  const std::vector<std::int64_t>& named() const { return named_; }

 private:
  std::int64_t any_named(Random& random) const;

  std::vector<std::int64_t> named_;  // with what lies beside them
  std::vector<double> reals_;
};

// Largest sizes that a guard may name, ascending: the rule's own numbers, and where it casts, as many whole numbers as
// a dtype of few digits has. Not 1: at size 1 most things are equal.
std::vector<std::int64_t> largest_sizes(const Rule& rule);

// The largest number in the rule's arithmetic of sizes and attributes that lies beyond all that is drawn; 0 where none
// does.
std::int64_t number_never_drawn(const Rule& rule);

// Every division by a number in the rule's arithmetic, in order: b / 729 is 0 of all that is smaller.
std::vector<const Number*> quotients_of(const Rule& rule);

// Conditions that the rule lacks: that every division of sizes, or remainder, on either side comes out even.
std::vector<Condition> missing_divisions(const Rule& rule);

}  // namespace weft::rule
