// weft/rules/equation/equation_degree.h -- degree and comparisons of an equation, for error bounds.
#pragma once
#include <cstdint>

#include "weft/rules/equation/equation.h"
#include "weft/rules/rule/error_bound.h"

namespace weft::equation {

// The largest degree of an output as a polynomial in the inputs; results of functions count as
// inputs.
std::int64_t degree(const Equation& equation);

rule::Comparisons comparisons(const Equation& equation);

}  // namespace weft::equation
