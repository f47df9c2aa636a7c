// weft/rules/equation/trial.h -- runs both sides of an equation at one choice of sizes and compares.
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

enum class Outcome : std::uint8_t {  // failures in order: the later one says more against the rule
  source_ill_typed,
  too_much_work,  // not run
  target_ill_typed,
  other_shapes,  // both make sense but an output has other sizes
  other_values,
  equal,
  // Equal on real numbers as often as tried, but not whatever the order of the numbers: a law that uses
  // more of < than that it orders, such as max(2x, 0) = 2 max(x, 0). The field knows no such law.
  equal_in_reals,
};

struct Tried {
  Outcome outcome = Outcome::equal;
  std::string why;                   // of an ill-typed side
  std::optional<Instance> instance;  // when both sides make sense
};

bool is_bad(Outcome outcome);  // the target is no stand-in for the source

// Whether the equation compares numbers anywhere.
bool compares(const Equation& equation);

class Trial {
 public:
  static constexpr double kMostWork = 1e6;

  Trial(const Equation& equation, Algebra& algebra);

  // With as many random values as `draws` says; at least once. Sides of more work are not run.
  Tried at(const InputSizes& sizes, std::int32_t ranks, std::int32_t draws, Random& random,
           double most_work = kMostWork);
  // Once more at the same sizes: over the field, and on real numbers (rule/real_draws.h).
  Outcome again(const Instance& instance, Random& random);
  // That many times on real numbers alone.
  bool holds_in_reals(const Instance& instance, int runs, Random& random);

  const Equation& equation() const { return equation_; }
  // What all runs on real numbers have shown so far.
  const rule::RealEvidence& reals() const { return reals_; }

 private:
  const Equation& equation_;
  Algebra& algebra_;
  bool compares_;
  rule::RealDraws draws_;
  rule::RealEvidence reals_;
  int turn_ = 0;
};

// Values for all inputs: whole numbers from -most to most.
std::vector<Held<double>> whole_numbers(const Equation& equation, const Instance& instance, std::int64_t most,
                                        Random& random);
// Numbers that were chosen to tell the sides apart.
std::vector<Held<double>> real_numbers(const Equation& equation, const Instance& instance,
                                       const rule::RealDraws& draws, Random& random);
// What the operations name: factors.
std::vector<double> constants_of(const Equation& equation);

// Where two outputs lie apart by more than rounding.
struct TrialDifference {
  std::size_t output = 0, rank = 0, element = 0;
  double left = 0, right = 0;
};
std::optional<TrialDifference> find_difference(const std::vector<Held<double>>& left,
                                               const std::vector<Held<double>>& right);

}  // namespace weft::equation
