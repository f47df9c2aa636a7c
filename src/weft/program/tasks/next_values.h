// weft/program/tasks/next_values.h -- writes the next value of a source over the old one.
//
//   u7 call adam: b9 b3 b4 = b2 b8 b3 b4     b9: the next value of b2, with other readers
//   u8 copy b2 = b9                          unnecessary if u7 is the last to read the old b2
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// REQUIRES: units are in execution order and not yet split into tasks.
void write_next_values(Program& program);

}  // namespace weft::program
