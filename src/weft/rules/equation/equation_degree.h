// weft/rules/equation/equation_degree.h -- how complicated the two sides of an equation are: for the error bound.
#pragma once
#include <cstdint>

#include "weft/rules/equation/equation.h"
#include "weft/rules/rule/error_bound.h"

namespace weft::equation {

// The largest degree of an output as a polynomial in the inputs, results of functions counted as inputs.
std::int64_t degree(const Equation& equation);

rule::Comparisons comparisons(const Equation& equation);

}  // namespace weft::equation
