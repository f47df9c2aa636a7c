// weft/rules/equation/term_equation.h -- the equation that says that terms of the generator are equal.
#pragma once
#include <array>
#include <span>

#include "weft/rules/equation/equation.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

// For each pair of stored terms an output: source's, target's. Inputs are named x1, x2, .. as they come.
Equation equation_of(const TermTable& terms, std::span<const std::array<TermId, 2>> outputs);

}  // namespace weft::equation
