// weft/rules/rule/run_instance.h -- runs both sides of an instance and compares them.
//
// Two judges. Over the prime field with random values two different polynomials differ with near certainty.
// In real numbers, chosen to meet (real_draws.h) and run as floats with a bound on their rounding (ops/rounded.h),
// what the field does not know shows: ties, zero, thresholds, functions, peaks, casts. On a mesh the ranks'
// shares are really cut and the communication really done; outputs must agree as whole values and in how the
// ranks hold them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/real_draws.h"

namespace weft::rule {

// Where the two sides differ first.
struct Difference {
  std::int32_t output = 0;
  std::int64_t at = -1;  // which element; -1: of the whole value
  std::string left, right;
};

template <class T>
struct InstanceRun {
  std::vector<ops::Tensor<T>> inputs;  // whole values, also on a mesh
  std::vector<ops::Tensor<T>> left, right;
  std::optional<Difference> difference;
  bool by_constants = false;  // equal for the constants that are written, not for those that dtypes hold
};

// Any values, and functions and order interpreted by a key of their own.
Result<InstanceRun<ops::Field>> run_field(const RuleInstance& instance, Random& random);

// What runs in real numbers have shown.
struct RealEvidence {
  std::int64_t conclusive = 0;  // runs in which rounding left no question open
  bool same = true;             // all results were the same doubles
  bool loses = false;           // equal as real numbers, not once values are rounded to their dtypes
  double apart = 0;             // the largest difference, of the larger of the two numbers

  void add(const RealEvidence& other);
};

// Compares the elements of two results; where one differs by more than rounding, the first such. How far they are
// apart counts where errors are at most `telling` of the numbers.
std::optional<std::size_t> add_compared(const ops::Tensor<ops::Rounded>& left,
                                        const ops::Tensor<ops::Rounded>& right, RealEvidence& evidence,
                                        double telling = 1e-6);

struct RealRun : InstanceRun<ops::Rounded> {
  RealEvidence evidence;
};

using RealInputs = std::vector<ops::Tensor<ops::Rounded>>;

// Numbers for the inputs, as `draws` chose them.
RealInputs draw_inputs(const RuleInstance& instance, const RealDraws& draws, Random& random);
// One run: as real numbers; then, where dtypes round, as rounded ones.
Result<RealRun> run_real(const RuleInstance& instance, RealInputs inputs, Random& random);
Result<RealRun> run_real(const RuleInstance& instance, const RealDraws& draws, Random& random);

bool has_cast(const plan::Graph& graph);

// Whether a value is held in fewer digits than a float's, wraps, or is converted.
bool is_rounded(const plan::Graph& graph);

// "0.5", "undefined", "too large"
std::string shown(ops::Rounded value);

}  // namespace weft::rule
