// weft/program/tasks/next_values.h -- what a parameter or a state is to hold next is written where it lies, at once.
//
//   u7 call adam: b9 b3 b4 = b2 b8 b3 b4     b2: a master weight, b9: what it is to be, read by others too
//   u8 copy b2 = b9                          not needed where nobody reads the old b2 after u7: those read b2 as well
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// REQUIRES: units are in the order in which they run, not yet cut into tasks.
void write_next_values(Program& program);

}  // namespace weft::program
