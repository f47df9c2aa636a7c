// weft/rules/rule/held_constants.h -- constants as their dtypes hold them.
//
//   constant(value=2.50000001, dtype=f32)      is 2.5
//   constant(value=0.1, dtype=bf16)            is 0.10009765625
//
// Both judges run the constants that a plan would run. A rule that needs the written numbers is equal up to
// rounding at best.
#pragma once
#include <optional>

#include "weft/plan/graph/dtype.h"
#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The nearest number that the dtype has; its largest ones are followed by infinity. `unbounded`: its digits alone,
// as if exponents had no end.
double held_in(plan::DType dtype, double value, bool unbounded = false);

// The same plan, node by node, value by value and symbol by symbol, with the constants that are held; none where
// they are those that are written.
std::optional<plan::Graph> with_held_constants(const plan::Graph& graph);

// Whether the rule's text has constants that a short dtype rounds, or casts.
bool states_constants(const Rule& rule);

}  // namespace weft::rule
