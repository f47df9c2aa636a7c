// weft/rules/rule/stored_run.h -- both sides on one device, every value as its dtype holds it.
//
//   x*x at x = 2e19, in f32       too large
//   x*x at x = 1e-30, in f32      0
//
// run_instance.h keeps the digits of doubles where no dtype is shorter than f32. Here f32 rounds as well and has an
// end, or, to tell that end from other rounding, exponents have none.
#pragma once
#include <vector>

#include "weft/rules/rule/run_instance.h"

namespace weft::rule {

enum class Exponents : std::uint8_t { of_dtype, unbounded };

struct StoredRun : InstanceRun<ops::Rounded> {
  bool doubt = false;  // a comparison or a whole part that rounding may have turned over
};

// As on one device, also where ranks communicate. REQUIRES: the inputs are those of the instance
StoredRun run_stored(const RuleInstance& instance, const RealInputs& inputs, Exponents exponents,
                     std::uint64_t key);

// Every output of a graph, in order.
std::vector<ops::Tensor<ops::Rounded>> evaluate_all(const plan::Graph& graph, const RealInputs& inputs,
                                                    const ops::Numbers<ops::Rounded>& numbers,
                                                    std::optional<Exponents> stored = {});

}  // namespace weft::rule
