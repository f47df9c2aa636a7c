// weft/rules/equation/trial.h -- runs and compares both sides of an equation at given sizes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/rules/equation/equation_side.h"
#include "weft/rules/rule/real_draws.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::equation {

// Both sides at given sizes.
struct Instance {
  InputSizes sizes;
  std::int32_t ranks = 1;
  EquationSide source, target;
};

enum class Outcome : std::uint8_t {  // failures ascend by how strongly they speak against the rule
  source_ill_typed,
  too_much_work,  // not run
  target_ill_typed,
  other_shapes,  // both are well typed, but an output's sizes differ
  other_values,
  equal,
  // Equal in all runs on real numbers, but not for every order of the numbers: a law that needs
  // more of < than that it is a total order, such as max(2x, 0) = 2 max(x, 0). The field does not
  // satisfy it.
  equal_in_reals,
};

struct Tried {
  Outcome outcome = Outcome::equal;
  std::string why;                   // why a side is ill-typed
  std::optional<Instance> instance;  // if both sides are well typed
};

bool is_bad(Outcome outcome);  // the target cannot replace the source

// Whether either side compares numbers.
bool compares(const Equation& equation);

class Trial {
 public:
  static constexpr double kMostWork = 1e6;

  Trial(const Equation& equation, Algebra& algebra);

  // Runs both sides on `draws` sets of random values, at least one. Does not run sides with more
  // work than `most_work`.
  Tried at(const InputSizes& sizes, std::int32_t ranks, std::int32_t draws, Random& random,
           double most_work = kMostWork);
  // Runs once more at the same sizes: over the field, and on real numbers (rule/real_draws.h).
  Outcome again(const Instance& instance, Random& random);
  // Whether the sides are equal in `runs` runs on real numbers only.
  bool holds_in_reals(const Instance& instance, int runs, Random& random);

  const Equation& equation() const { return equation_; }
  // The evidence of all runs on real numbers so far.
  const rule::RealEvidence& reals() const { return reals_; }

 private:
  const Equation& equation_;
  Algebra& algebra_;
  bool compares_;
  rule::RealDraws draws_;
  rule::RealEvidence reals_;
  int turn_ = 0;
};

// Values for all inputs: integers from -most to most.
std::vector<Held<double>> whole_numbers(const Equation& equation, const Instance& instance, std::int64_t most,
                                        Random& random);
// Values for all inputs, chosen to distinguish the sides.
std::vector<Held<double>> real_numbers(const Equation& equation, const Instance& instance,
                                       const rule::RealDraws& draws, Random& random);
// The factors that the operations state.
std::vector<double> constants_of(const Equation& equation);

// An element in which two outputs differ by more than rounding.
struct TrialDifference {
  std::size_t output = 0, rank = 0, element = 0;
  double left = 0, right = 0;
};
std::optional<TrialDifference> find_difference(const std::vector<Held<double>>& left,
                                               const std::vector<Held<double>>& right);

}  // namespace weft::equation
