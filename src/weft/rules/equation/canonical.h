// weft/rules/equation/canonical.h -- when two equations are the same rule.
//
//   relu(ewadd(i1, i2)) = relu(ewadd(i2, i1))      and      relu(ewadd(y, x)) = relu(ewadd(x, y))
//
// are one: names of inputs, the order in which operations are listed, which side comes first, the order
// of outputs, the operands' order of commutative operations, identities, and attributes that do not
// change what is computed (when a transpose moves its data; a convolution's kernel, which its weights
// tell) make no difference.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/hash.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// The operation without its operands and without attributes that make no difference.
Operation bare(const Operation& operation);

bool is_commutative(Verb verb);

// Whether a result is the same on every rank, when it is known whether all operands are.
bool is_alike(Verb verb, const Details& details, bool operands_alike);

// What one of so many ranks holds of the input's example, where they share it evenly.
std::vector<std::int64_t> local_sizes(const EquationInput& input, std::int32_t ranks);

Digest canonical_key(const Equation& equation);

// Leaves and operations of both sides, written out as trees.
std::size_t size_of(const Equation& equation);

}  // namespace weft::equation
