// weft/rules/rule/error_bound.h -- the probability that a false rule is accepted.
//
// At given sizes both sides are polynomials in the elements of the inputs. A random field element
// is a root of a nonzero polynomial with probability at most degree / p, where p = 2^61 - 1
// (Schwartz, Zippel). So with probability 1 - bound the two sides are equal at EVERY choice of
// sizes that was tried, for all values:
//
//   bound = sizes * (degree / p) ^ draws
//
// If numbers are compared, each keyed order tried picks one of the orders of m compared numbers and
// 0. The rarest occurs with probability at least q = 1 / ((m + 1) * C(m, m/2)) if all are compared
// with 0 (relu), 1 / (m + 1)! otherwise. A rule that is false for only that order passes all runs
// with probability at most (1 - q) ^ runs, which is added. m counts the operations that compare,
// each deciding once, as at the smallest sizes.
//
// If only real numbers support a rule, there is no such bound. After n runs without a failure the
// next fails with probability 1 / (n + 2) (Laplace's rule of succession), and this is the value
// reported.
//
// Shapes and attributes are sampled. A failure that affects a share s of the cases, as they are
// drawn, is missed by all n of them with probability (1 - s)^n. The share for which that is 1 % is
// reported beside the bound.
#pragma once
#include <cstdint>

namespace weft::rule {

struct TriedCounts {
  std::int64_t sizes = 0;  // distinct
  std::int64_t draws = 1;  // per choice of sizes
  std::int64_t runs = 0;   // in total, each with a different order
};

// The number of operations that compare with zero, and of those that compare elements with each
// other.
struct Comparisons {
  int with_zero = 0, with_others = 0;
};

// The number of runs after which orders add at most `bound` to the bound; 0 if nothing is compared.
std::int64_t runs_needed(const Comparisons& compared, double bound);
double error_bound(std::int64_t degree, const Comparisons& compared, const TriedCounts& tried);
double sampled_error(std::int64_t runs);  // after `runs` runs without a failure
double unseen_share(std::int64_t cases);  // the share that all cases miss with a probability of 1 %

}  // namespace weft::rule
