// weft/rules/rule/rounded_constants.h -- constants rounded to their dtypes.
//
//   constant(value=2.50000001, dtype=f32)      is 2.5
//   constant(value=0.1, dtype=bf16)            is 0.10009765625
//
// Rules and equations are judged with the constants that a plan would use. A rule that needs the
// exact constants is at best equal up to rounding.
#pragma once
#include <optional>

#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The nearest number of the dtype; infinity beyond its largest. `unbounded`: rounds only the
// mantissa, as if exponents were unbounded.
double round_to_dtype(plan::DType dtype, double value, bool unbounded = false);

// A copy of the plan with rounded constants; nodes, values and symbols keep their numbers. nullopt
// if no constant changes.
std::optional<plan::Graph> with_rounded_constants(const plan::Graph& graph);

// Whether the rule's text has casts, or constants that a low-precision dtype rounds.
bool states_constants(const Rule& rule);

}  // namespace weft::rule
