// weft/rules/rule/rule_degree.h -- how complicated the two sides of an instance are: for the error bound.
#pragma once
#include <cstdint>

#include "weft/rules/rule/error_bound.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// The largest degree of an output as a polynomial in the inputs, results of functions counted as inputs. Of
// quotients it is that of the polynomials that are equal when they are.
std::int64_t degree(const RuleInstance& instance);

// Whether all operators add, multiply or move numbers: then the field knows all about them.
bool is_polynomial(const RuleInstance& instance);

// In the operators of both sides, but for those that a variable stands for: what holds for a function of
// which nothing is known, as half of the instances have it, holds for one that compares.
Comparisons comparisons(const RuleInstance& instance);

// How floating point fares, from instances at which both sides are equal but not the same floats.
Rounding classify_rounding(std::span<const RuleInstance* const> instances);

}  // namespace weft::rule
