// weft/rules/rule/float_range.h -- the magnitudes for which both sides are equal in f32.
//
//   sqrt(x * x) = abs(x)       from 1.1e-19 to 1.8e+19: beyond, the square overflows or underflows
//   log(exp(x)) = x            to 88
//   neg(neg(x)) = x            everywhere
//
// Unlike real numbers, f32 has a limited range. Both sides run in f32, and again with unbounded
// exponents (stored_run.h): a side is within the range if the two results agree. If one side is and
// the other is not, a plan would compute something else after the rewrite.
#pragma once
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// For the instances whose real numbers are all f32, as on one device; all of f32 if there is none.
// Sampled: the range in which `draws` consecutive draws per instance showed no difference.
FloatRange find_float_range(std::span<const RuleInstance* const> instances, int draws, Random& random);

}  // namespace weft::rule
