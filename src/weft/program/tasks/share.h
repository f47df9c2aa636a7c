// weft/program/tasks/share.h -- when each buffer is in use, and which can be one.
//
// A loop that reads a value for the last time may write its result over it, element by element; so
// may an all-reduce.
#pragma once
#include <functional>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Fills in Buffer::born and dies, for the units in their order, and lets results take the place of
// operands that die where the loop reads each element before it writes it.
void share_buffers(Program& program);

// Buffer::born and dies alone, for units that were cut since.
void find_lives(Program& program);

// Whether a loop may write one buffer over another that it reads, element by element. REQUIRES: nobody reads that one later.
bool may_write_over(const RowLoop& loop, BufferId read, BufferId written);

// Every mention of a buffer in units and ports.
void for_each_buffer_id(Program& program, const std::function<void(BufferId&)>& visit);

}  // namespace weft::program
