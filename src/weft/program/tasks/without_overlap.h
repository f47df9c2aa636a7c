// weft/program/tasks/without_overlap.h -- what tasks wait for when nothing else runs while bytes move.
//
//   compute 1, compute 2, move, compute 3      the move waits for both before it, and what follows it waits
//                                              for the move, whoever needs what it brings
//
// The executor runs tasks so where movers would take processors from workers, and the simulator with it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// By task: what it waits for then, ascending. `moves` are the tasks that move bytes between ranks, ascending.
std::vector<std::vector<std::uint32_t>> waits_without_overlap(std::span<const Task> tasks,
                                                              std::span<const std::uint32_t> moves);

}  // namespace weft::program
