// weft/rules/rule/stored_run.h -- runs both sides with every value rounded to its dtype.
//
//   x*x at x = 2e19, in f32       too large
//   x*x at x = 1e-30, in f32      0
//
// run_instance.h computes in doubles unless a dtype is shorter than f32. Here f32 also rounds and
// overflows; or, to separate overflow from rounding, exponents are unbounded.
#pragma once
#include <vector>

#include "weft/rules/rule/run_instance.h"

namespace weft::rule {

enum class Exponents : std::uint8_t { of_dtype, unbounded };

struct StoredRun : InstanceRun<ops::Rounded> {
  bool doubt = false;  // rounding may have flipped a comparison or changed an integer part
};

// Runs as on one device, even if ranks communicate. REQUIRES: the inputs are those of the instance
StoredRun run_stored(const RuleInstance& instance, const RealInputs& inputs, Exponents exponents,
                     std::uint64_t key);

// Every output of a graph, in order.
std::vector<ops::Tensor<ops::Rounded>> evaluate_all(const plan::Graph& graph, const RealInputs& inputs,
                                                    const ops::Numbers<ops::Rounded>& numbers,
                                                    std::optional<Exponents> stored = {});

}  // namespace weft::rule
