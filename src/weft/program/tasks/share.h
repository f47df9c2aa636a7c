// weft/program/tasks/share.h -- computes buffer lifetimes and lets buffers share memory.
//
// A loop that reads a value for the last time may write its result over it, element by element. So
// may an all-reduce.
#pragma once
#include <functional>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Sets Buffer::born and dies for the units in order. Lets results replace operands that die there,
// if the loop reads each element before it writes it.
void share_buffers(Program& program);

// Only recomputes Buffer::born and dies, after units were split.
void find_lifetimes(Program& program);

// Whether a loop may write one buffer over another that it reads, element by element. REQUIRES: the
// latter is not read later.
bool may_write_over(const RowLoop& loop, BufferId read, BufferId written);

// Visits every reference to a buffer in units and ports.
void for_each_buffer_id(Program& program, const std::function<void(BufferId&)>& visit);

}  // namespace weft::program
