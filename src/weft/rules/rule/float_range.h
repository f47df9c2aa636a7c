// weft/rules/rule/float_range.h -- the magnitudes between which f32 computes both sides alike.
//
//   sqrt(x * x) = abs(x)       from 1.1e-19 to 1.8e+19: beyond, the square overflows or underflows
//   log(exp(x)) = x            to 88
//   neg(neg(x)) = x            everywhere
//
// Real numbers have no end, f32 has. Both sides are run as f32 holds them, and once more with exponents that do not end
// (stored_run.h): a side is within the range where the two agree. Where one side is and the other is not, a plan would
// compute something else after the rewrite.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// Of the instances whose real numbers are f32, as on one device; all of f32 where there is none. Sampled: that many draws
// without a difference at each.
FloatRange find_float_range(std::span<const RuleInstance* const> instances, int draws, Random& random);

}  // namespace weft::rule
