// weft/program/tasks/cut.h -- splits units into tasks: enough for every worker, but none too small.
//
// Row loops and operator kernels are split in the same way for any number of workers, so that sums
// over rows are bitwise identical. Matrix products are split by the number of workers: each split
// makes the library read the other operand once more.
#pragma once
#include <cstdint>

#include "weft/program/tasks/program.h"

namespace weft::program {

// By operand of a loop: whether the loop writes it; it reads the others.
std::vector<bool> written_operands(const RowLoop& loop);

// The number of tasks of a row loop.
std::int64_t row_loop_chunks(const RowLoop& loop);

// Fills in Program::tasks except their waits.
void split_into_tasks(Program& program, int workers);
// The same with one task per unit.
void make_whole_tasks(Program& program);

}  // namespace weft::program
