// weft/rules/rule/real_draws.h -- numbers on which a false rule is likely to show itself.
//
// Random reals never meet: what a rule does with equal numbers, with zero, at a threshold, is seen only on
// numbers that were chosen to meet. So runs take turns: a few small numbers again and again, the rule's own
// constants and what lies beside and between them, two numbers for everything, reals of both signs, of all
// sizes, positive ones alone, and such as exp can just bear or no longer bear.
#pragma once
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/graph.h"

namespace weft::rule {

class RealDraws {
 public:
  static constexpr int kTurns = 8;

  // `constants`: numbers that the two sides name or compute from what they name.
  // Numbers of each input at which the sides were seen to differ elsewhere.
  using Hints = std::vector<std::vector<double>>;
  // `rows`: whole numbers name a row of at most so many now and then; from `first` on.
  explicit RealDraws(std::vector<double> constants, Hints hints = {}, std::int64_t rows = 0);
  void count_from(std::int64_t first) { first_ = first; }

  // The next run; turn k is of another kind than turn k + 1.
  void begin(int turn, Random& random);
  // One element of an input, as the dtype can hold it.
  double next(plan::DType dtype, Random& random, std::size_t input = 0) const;

  const std::vector<double>& constants() const { return constants_; }

 private:
  double real(Random& random) const;
  double whole(Random& random, bool wide) const;

  Hints hints_;
  std::int64_t rows_ = 0, first_ = 0;
  std::vector<double> constants_;  // with their neighbours, sums, quotients and midpoints
  int turn_ = 0;
  double one_ = 0, other_ = 1;  // of a run of two numbers
};

struct RuleInstance;
// For the numbers and sizes of this instance.
RealDraws draws_for(const RuleInstance& instance, RealDraws::Hints hints = {});

// What the nodes of a graph name: constants, real attributes, and the values of nodes that depend on no input.
std::vector<double> constants_of(const plan::Graph& graph);

}  // namespace weft::rule
