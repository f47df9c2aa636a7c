// weft/program/tasks/spill.h -- what of a rank's memory lies in a file, so that the rest fits a limit.
//
//   address 0          spilled_bytes      persistent_bytes      + work_bytes         + spilled_work_bytes
//   |  states in a file  |  parameters, ..  |  packed step       |  activations in a file  |
//
// A spilled buffer is memory like any other: whoever runs the program maps a file there, and lets go of its pages
// once a task has used them (release_points). First go what an optimizer reads and writes once a step, then
// activations that wait long for the backward phase, then parameters. What an exchange moves stays.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Of every machine that Weft runs on: pages are this or divide it.
inline constexpr std::int64_t kSpillPage = 64 << 10;
// Two pages of an accelerator's, where what is spilled begins and ends.
inline constexpr std::int64_t kHostPages = 2 * (2 << 20);

// Marks more buffers, of about so many bytes; false: there is nothing left to spill.
bool spill_more(Program& program, std::int64_t bytes);

// By task: stretches of spilled buffers that no task of the same unit after it touches.
std::vector<std::vector<Extent>> release_points(const Program& program);

// The most of spilled buffers that `workers` tasks hold at once.
std::int64_t spill_window(const Program& program, int workers);

}  // namespace weft::program
