// weft/rules/rule/breakpoints.h -- sizes and attributes at which a rule may begin to fail.
//
//   left y = slice(x, along=n, begin=0, end=size(x, n) - size(x, n) / 7)     right y = x
//
// holds up to size 6. Numbers that a rule names, those numbers plus and minus one, and their sums
// and products are drawn as sizes, attributes and rank counts, along with some that it does not
// name.
//
// A quotient of sizes behaves differently for every remainder. A rule must state that it is exact,
// or the prover adds this to the guard.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/random.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

class Breakpoints {
 public:
  explicit Breakpoints(const Rule& rule);

  // At least 1: often close to a number that the rule names, otherwise larger than the sizes always
  // tried.
  std::int64_t size(Random& random) const;
  // Any integer that a rule might bind.
  std::int64_t integer(Random& random) const;
  double real(Random& random) const;

  const std::vector<std::int64_t>& named() const { return named_; }

 private:
  std::int64_t any_named(Random& random) const;

  std::vector<std::int64_t> named_;  // including neighbours
  std::vector<double> reals_;
};

// Upper bounds of sizes that a guard may use, ascending: the rule's own numbers, and if it casts,
// the number of integers that low-precision dtypes represent. Excludes 1, since most things are
// equal at size 1.
std::vector<std::int64_t> largest_sizes(const Rule& rule);

// The largest number in the rule's arithmetic of sizes and attributes that is beyond everything
// drawn; 0 if there is none.
std::int64_t number_never_drawn(const Rule& rule);

// Every division by a number in the rule's arithmetic, in order: b / 729 is 0 for all smaller b.
std::vector<const Number*> quotients_of(const Rule& rule);

// Conditions that the rule lacks: that every division and remainder of sizes, on either side, is
// exact.
std::vector<Condition> missing_divisions(const Rule& rule);

}  // namespace weft::rule
