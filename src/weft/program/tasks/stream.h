// weft/program/tasks/stream.h -- what a rank does one after the other, and what beside it.
//
//   compute   [product 1][product 2][product 3].........[update]
//   gpu       ..........[reduce 1 ....][reduce 2 ....]                two axes move at once,
//   node      ...............[gather ........]                       the exchanges of one in their order
//
// A stream is a queue of tasks. Stream 0 computes: a rank's workers take what is ready of it, the first in the
// program first. Every other stream moves bytes: its tasks begin strictly in the program's order, each when
// the one before it is over and what it waits for is done. There is one for each mesh axis that has collectives,
// and one each for its sends and its receives.
//
// Streams are part of the program: the simulator (sim/step/step_run.h) and the executor (exec/crew.h) take them
// from here, so what one overlaps the other does too.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Gives every unit its stream: an exchange that of its mesh axis, in the order in which axes first come, which
// is the same on all ranks; all else stream 0.
void assign_streams(Program& program);

// The tasks of each stream, ascending.
std::vector<std::vector<std::uint32_t>> tasks_by_stream(const Program& program);

}  // namespace weft::program
