// weft/program/tasks/updates.h -- fused optimizer: updates of many tensors as one unit.
//
//   gradient of w9, update w9, round w9, gradient of w8, update w8, round w8, ..       launches of a few us each
//   gradient of w9, gradient of w8, .., update and round w9, w8, ..                     one
//
// Updates by the same operator, attributes and types are collected until they move enough memory to
// make the launch time negligible. So the memory of a gradient is freed almost as early as before.
// The rounding of an updated master weight to the parameter is included, once the parameter is not
// read any more. Gradients from different exchanges are updated separately: the first need not wait
// for the last.
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// The number of an optimizer's operands that are tensors: the parameter, its gradient, moments.
// Scalars follow.
std::size_t updated_tensors(const plan::Operator& optimizer);

// The least that the updates of one unit move, if there are enough of them.
inline constexpr std::int64_t kUpdatedBytes = 256 << 20;

// REQUIRES: units have been ordered. Their numbers change.
void join_updates(Program& program, std::int64_t enough_bytes = kUpdatedBytes);

}  // namespace weft::program
