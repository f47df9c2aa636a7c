// weft/program/tasks/waits.h -- finds the dependencies of tasks from addresses alone.
//
//   t0 writes [0, 64)     t1 reads [0, 64), writes [64, 128)     t2 writes [0, 32)
//
//   t1 waits for t0 (it reads what t0 writes), t2 for t1 (it overwrites what t1 reads)
//
// Tasks are in a valid execution order, those of a unit adjacent. Each waits for the tasks of
// earlier units that it must not overtake. Tasks of one unit do not conflict, unless the unit runs
// in passes, each of which numbers its chunks from 0. Then tasks wait for earlier passes in the
// same way.
#pragma once
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Fills in Task::waits. REQUIRES: the buffers have their offsets.
void find_waits(std::span<Task> tasks, std::span<const Buffer> buffers);

}  // namespace weft::program
