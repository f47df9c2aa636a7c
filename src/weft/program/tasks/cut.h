// weft/program/tasks/cut.h -- cuts units into tasks: enough for every worker, none too small to be worth it.
//
// Loops over rows and operators' own kernels are cut the same for any number of workers, so sums
// over rows have the same bits on one as on many. Matrix products are cut for the workers there
// are: each cut costs the library a pass over the other operand.
#pragma once
#include <cstdint>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Which of a loop's operands it writes; it reads the others.
std::vector<bool> written_operands(const RowLoop& loop);

// How many tasks a loop over rows becomes.
std::int64_t row_loop_chunks(const RowLoop& loop);

// Fills in Program::tasks, without what they wait for.
void cut_into_tasks(Program& program, int workers);
// The same with one task a unit.
void take_units_whole(Program& program);

}  // namespace weft::program
