// weft/rules/equation/term_equation.h -- the equation between terms of the generator.
#pragma once
#include <array>
#include <span>

#include "weft/rules/equation/equation.h"
#include "weft/rules/equation/term.h"

namespace weft::equation {

// One output per pair of stored terms (source, target). Inputs are named x1, x2, .. in order of
// first use.
Equation equation_of(const TermTable& terms, std::span<const std::array<TermId, 2>> outputs);

}  // namespace weft::equation
