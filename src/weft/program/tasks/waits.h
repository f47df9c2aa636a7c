// weft/program/tasks/waits.h -- what waits for what, found from addresses alone.
//
//   t0 writes [0, 64)     t1 reads [0, 64), writes [64, 128)     t2 writes [0, 32)
//
//   t1 waits for t0 (it reads what t0 writes), t2 for t1 (it overwrites what t1 reads)
//
// The tasks are in an order that runs, those of a unit next to each other; each waits for the tasks of
// earlier units that it must not overtake. Tasks of one unit share no memory that one of them writes, unless it goes in
// passes, of which each counts its chunks from 0: then they wait for earlier passes likewise.
#pragma once
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Fills in Task::waits. The extents must have been given addresses: buffers their offsets.
void find_waits(std::span<Task> tasks, std::span<const Buffer> buffers);

}  // namespace weft::program
