// weft/rules/rule/real_draws.h -- draws numbers on which a false rule is likely to fail.
//
// Random reals are never equal: how a rule treats equal numbers, zero or a threshold shows only on
// numbers chosen for that. So runs alternate between a few small numbers, the rule's own constants
// with their neighbours and midpoints, only two different numbers, reals of both signs, of all
// magnitudes, only positive ones, and numbers near the limits of exp.
#pragma once
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/graph.h"

namespace weft::rule {

class RealDraws {
 public:
  static constexpr int kTurns = 8;

  // By input, numbers at which the sides were found to differ elsewhere.
  using Hints = std::vector<std::vector<double>>;
  // `constants`: numbers that the two sides state or compute from those. `rows`: if not 0, some
  // integers name one of so many rows, starting at the offset of count_from().
  explicit RealDraws(std::vector<double> constants, Hints hints = {}, std::int64_t rows = 0);
  void count_from(std::int64_t first) { first_ = first; }

  // Starts the next run; consecutive turns draw different kinds of numbers.
  void begin(int turn, Random& random);
  // One element of an input, representable in the dtype.
  double next(plan::DType dtype, Random& random, std::size_t input = 0) const;

  const std::vector<double>& constants() const { return constants_; }

 private:
  double real(Random& random) const;
  double whole(Random& random, bool wide) const;

  Hints hints_;
  std::int64_t rows_ = 0, first_ = 0;
  std::vector<double> constants_;  // including neighbours, sums, quotients and midpoints
  int turn_ = 0;
  double one_ = 0, other_ = 1;  // for a run with only two numbers
};

struct RuleInstance;
// With the constants and sizes of this instance.
RealDraws draws_for(const RuleInstance& instance, RealDraws::Hints hints = {});

// The constants of a graph's nodes, their real attributes, and values that depend on no input.
std::vector<double> constants_of(const plan::Graph& graph);

}  // namespace weft::rule
