// weft/program/tasks/stream.h -- assigns units to streams.
//
//   compute   [product 1][product 2][product 3].........[update]
//   gpu       ..........[reduce 1 ....][reduce 2 ....]    two axes communicate concurrently,
//   node      ...............[gather ........]            the exchanges of one in order
//
// A stream is a queue of tasks. Stream 0 computes: a rank's workers start its ready tasks, the
// earliest in the program first. Every other stream moves bytes. Its tasks start strictly in
// program order, each when the previous one is done and its dependencies are met. There is one such
// stream per mesh axis with collectives, and one each for its sends and its receives.
//
// Streams are part of the program. The simulator (sim/step/step_run.h) and the executor
// (exec/worker_pool.h) both use them, so they overlap the same work.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Assigns a stream to every unit: the stream of its mesh axis to an exchange, with axes in order of
// first use, which is the same on all ranks; stream 0 to all others.
void assign_streams(Program& program);

// The tasks of each stream, ascending.
std::vector<std::vector<std::uint32_t>> tasks_by_stream(const Program& program);

}  // namespace weft::program
