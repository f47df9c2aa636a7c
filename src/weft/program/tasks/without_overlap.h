// weft/program/tasks/without_overlap.h -- dependencies of tasks without overlap.
//
//   compute 1, compute 2, move, compute 3      the move waits for all tasks before it, and all after it
//                                              wait for it, whether they need its data or not
//
// The executor runs tasks like this where communication would take CPU cores from workers, and the
// simulator does the same.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// By task: its dependencies then, ascending. `moves`: the tasks that move bytes between ranks,
// ascending.
std::vector<std::vector<std::uint32_t>> waits_without_overlap(std::span<const Task> tasks,
                                                              std::span<const std::uint32_t> moves);

}  // namespace weft::program
