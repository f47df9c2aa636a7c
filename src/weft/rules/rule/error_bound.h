// weft/rules/rule/error_bound.h -- how likely it is that a false rule got through.
//
// At given sizes both sides are polynomials in the elements of the inputs; an element of the field that is
// picked at random is a root of a polynomial that is not zero with probability at most degree / p, where
// p = 2^61 - 1 (Schwartz, Zippel). So with probability 1 - bound the two sides are equal at EVERY choice of
// sizes that was tried, whatever the values:
//
//   bound = sizes * (degree / p) ^ draws
//
// Where numbers are compared, each of the keyed orders tried picks one of the ways in which m compared
// numbers and 0 can lie; the rarest turns up with probability at least q = 1 / ((m + 1) * C(m, m/2)) when
// all are compared with 0 (relu), 1 / (m + 1)! otherwise. A rule that is false for just that one way then
// gets through all runs with probability at most (1 - q) ^ runs, which is added. m counts the operations
// that compare, each deciding once, as at the smallest sizes.
//
// Where real numbers alone speak for a rule nothing bounds it so; after n runs without a failure the next fails
// with probability 1 / (n + 2) (Laplace's rule of succession), and that is what is said.
//
// Shapes and attributes are sampled. What fails at a share s of the cases as they are drawn was missed by all n
// of them with probability (1 - s)^n; the share at which that is 1 % is stated beside the bound.
#pragma once
#include <cstdint>

namespace weft::rule {

struct TriedCounts {
  std::int64_t sizes = 0;  // distinct
  std::int64_t draws = 1;  // at each of them
  std::int64_t runs = 0;   // all in all, each with an order of its own
};

// How many operations compare with zero, and how many compare elements with each other.
struct Comparisons {
  int with_zero = 0, with_others = 0;
};

// Runs after which the part of the bound that orders add is at most `bound`; 0 where nothing is compared.
std::int64_t runs_needed(const Comparisons& compared, double bound);
double error_bound(std::int64_t degree, const Comparisons& compared, const TriedCounts& tried);
double sampled_error(std::int64_t runs);  // none of which failed
double unseen_share(std::int64_t cases);  // that all of them miss with a probability of 1 %

}  // namespace weft::rule
