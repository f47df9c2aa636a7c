// weft/program/tasks/updates.h -- what an optimizer does to many tensors, as one unit.
//
//   gradient of w9, update w9, round w9, gradient of w8, update w8, round w8, ..       launches of a few us each
//   gradient of w9, gradient of w8, .., update and round w9, w8, ..                     one
//
// Updates by the same operator with the same attributes and types wait for each other until together they move enough
// memory that a launch does not count; so a gradient's memory is free nearly as soon as before. The rounding of a
// renewed master weight to the parameter goes along, once nobody reads the parameter any more. Gradients that
// different exchanges bring are updated apart: the first need not wait for the last.
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// Operands of an optimizer that are tensors: the parameter, its gradient, moments. What comes after them is a number.
std::size_t updated_tensors(const plan::Operator& optimizer);

// What updates of one unit move at least, where there are so many.
inline constexpr std::int64_t kUpdatedBytes = 256 << 20;

// Units must have been ordered; their numbers change.
void join_updates(Program& program, std::int64_t enough_bytes = kUpdatedBytes);

}  // namespace weft::program
