// weft/rules/equation/canonical.h -- when two equations are the same rule.
//
//   relu(ewadd(i1, i2)) = relu(ewadd(i2, i1))      and      relu(ewadd(y, x)) = relu(ewadd(x, y))
//
// are the same. The following make no difference: names of inputs, the order of operations, which
// side comes first, the order of outputs, the operand order of commutative operations, identities,
// and attributes that do not change the result (when a transpose moves its data; a convolution's
// kernel, which follows from its weights).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/hash.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// The operation without operands and without attributes that make no difference.
Operation bare(const Operation& operation);

bool is_commutative(Verb verb);

// Whether a result is the same on every rank, given whether all operands are.
bool is_alike(Verb verb, const Details& details, bool operands_alike);

// The sizes that each of `ranks` ranks holds of the input's example, if it is sliced evenly.
std::vector<std::int64_t> local_sizes(const EquationInput& input, std::int32_t ranks);

Digest canonical_key(const Equation& equation);

// The number of leaves and operations of both sides, written out as trees.
std::size_t size_of(const Equation& equation);

}  // namespace weft::equation
