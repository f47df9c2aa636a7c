// weft/program/tasks/spill.h -- chooses the buffers to store in a file under a memory limit.
//
//   address 0          spilled_bytes      persistent_bytes      + work_bytes         + spilled_work_bytes
//   |  states in a file  |  parameters, ..  |  packed step       |  activations in a file  |
//
// A spilled buffer is ordinary memory to kernels. The executor maps a file there and releases its
// pages once a task has used them (release_points). Spilled first are optimizer states, which are
// read and written once per step, then activations that wait long for the backward phase, then
// parameters. Buffers that an exchange moves are never spilled.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// The page size on every machine that Weft supports is this or divides it.
inline constexpr std::int64_t kSpillPage = 64 << 10;
// Two accelerator pages, at the begin and end of the spilled range.
inline constexpr std::int64_t kHostPages = 2 * (2 << 20);

// Spills further buffers with about this many bytes; false: nothing is left to spill.
bool spill_more(Program& program, std::int64_t bytes);

// By task: ranges of spilled buffers that no later task of the same unit accesses.
std::vector<std::vector<Extent>> release_points(const Program& program);

// The most spilled bytes that `workers` concurrent tasks hold at once.
std::int64_t spill_window(const Program& program, int workers);

}  // namespace weft::program
