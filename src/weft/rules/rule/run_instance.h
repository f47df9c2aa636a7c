// weft/rules/rule/run_instance.h -- runs both sides of an instance and compares them.
//
// Two tests. Over the prime field with random values, two different polynomials almost certainly
// differ. On real numbers, chosen to cause ties (real_draws.h) and run in floating point with a
// bound on rounding errors (ops/rounded.h), the rest shows: ties, zero, thresholds, functions,
// peaks, casts. On a mesh the ranks' shares are really sliced and the communication is done.
// Outputs must agree as whole values and in their layouts.
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

// The first difference between the two sides.
struct Difference {
  std::int32_t output = 0;
  std::int64_t at = -1;  // element; -1: the whole value
  std::string left, right;
};

template <class T>
struct InstanceRun {
  std::vector<ops::Tensor<T>> inputs;  // whole values, also on a mesh
  std::vector<ops::Tensor<T>> left, right;
  std::optional<Difference> difference;
  bool by_constants = false;  // equal with exact constants, but not with rounded ones
};

// Runs over the field with random values and a random key for functions and order.
Result<InstanceRun<ops::Field>> run_field(const RuleInstance& instance, Random& random);

// The evidence from runs on real numbers.
struct RealEvidence {
  std::int64_t conclusive = 0;  // runs that rounding did not make inconclusive
  bool same = true;             // all results were bitwise equal
  bool loses = false;           // equal as real numbers, but not after rounding to the dtypes
  double apart = 0;             // the largest relative difference

  void add(const RealEvidence& other);
};

// Compares the elements of two results. Returns the first element that differs by more than
// rounding. Differences are recorded only if the relative error is at most `telling`.
std::optional<std::size_t> add_compared(const ops::Tensor<ops::Rounded>& left,
                                        const ops::Tensor<ops::Rounded>& right, RealEvidence& evidence,
                                        double telling = 1e-6);

struct RealRun : InstanceRun<ops::Rounded> {
  RealEvidence evidence;
};

using RealInputs = std::vector<ops::Tensor<ops::Rounded>>;

// Values for the inputs, drawn from `draws`.
RealInputs draw_inputs(const RuleInstance& instance, const RealDraws& draws, Random& random);
// One run: on real numbers; then, if dtypes round, with rounding.
Result<RealRun> run_real(const RuleInstance& instance, RealInputs inputs, Random& random);
Result<RealRun> run_real(const RuleInstance& instance, const RealDraws& draws, Random& random);

bool has_cast(const plan::Graph& graph);

// Whether a value has a dtype with fewer digits than f32, wraps, or is cast.
bool is_rounded(const plan::Graph& graph);

// "0.5", "undefined", "too large"
std::string shown(ops::Rounded value);

}  // namespace weft::rule
