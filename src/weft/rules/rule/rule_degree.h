// weft/rules/rule/rule_degree.h -- degree and comparisons of an instance, for the error bound.
#pragma once
#include <cstdint>

#include "weft/rules/rule/error_bound.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

// The largest degree of an output as a polynomial in the inputs; results of functions count as
// inputs. For quotients, the degree of the cross-multiplied polynomials.
std::int64_t degree(const RuleInstance& instance);

// Whether all operators add, multiply or move numbers, so that the field is conclusive.
bool is_polynomial(const RuleInstance& instance);

// The comparisons in both sides, except by operators that a variable stands for. Half of the
// instances use an uninterpreted function for those, and what holds for it also holds for one that
// compares.
Comparisons comparisons(const RuleInstance& instance);

// Classifies rounding from instances at which both sides are equal but not bitwise.
Rounding classify_rounding(std::span<const RuleInstance* const> instances);

}  // namespace weft::rule
