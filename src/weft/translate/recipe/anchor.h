// weft/translate/recipe/anchor.h -- measured steps calibrate the stack, so that other predictions follow them.
//
//   measured {1.31 s, 61 GiB}, predicted {1.05 s, 58 GiB} with megatron
//     -> megatron_anchored: kernels 1.22x, host 1.03x, collectives 1.02x, activations 1.09x; smaller errors
//
// A time moves the factors of kernels, of the host and of collectives, by their shares of the predicted step. A peak
// of memory moves those of activations and gradients; parameters and optimizer states are known. Half of a stack's
// squared error is taken to be common to all steps of one user, and half to be of each plan alone. So one measurement
// moves a prediction about half of the way if it is within the error, and two thirds of it if it is far outside.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/stack.h"

namespace weft::recipe {

struct StepValues {
  double seconds = 0, peak_bytes = 0;  // 0: not measured
};

struct AnchorFactor {
  std::string_view what;  // "kernels"
  double factor = 1;      // of their time or bytes
};

struct Anchor {
  cluster::Stack stack;                   // derived; its name ends in "_anchored"
  std::vector<StepValues> before, after;  // predictions of the measured steps
  std::vector<AnchorFactor> factors;
};

struct AnchorProblem {
  cluster::Stack stack;
  // Half of the 80 % intervals of predictions: of a step, of a peak of memory, and of a step by the device alone.
  double step_error = 0, memory_error = 0, device_error = 0;
  std::vector<StepValues> measured;
  // The measured steps as another stack runs them, in the order of `measured`.
  std::function<Result<std::vector<StepValues>>(const cluster::Stack&)> predict;
};

// Fails if a measured value is not a positive finite number, or so far from the prediction that they are not of the
// same step.
Result<Anchor> anchor(const AnchorProblem& problem);

// The stack as CREATE STACK, without fields of default value.
std::string print_create(const cluster::Stack& stack);

}  // namespace weft::recipe
