// weft/program/tasks/fetch.h -- what lies in the host's memory is brought to the accelerator before it is read many times.
//
//   u7 product 8192 x 2048 x 2048: b9 = b5 * b3      b3 is spilled: its tiles would each cross the bus for every tile of b9
//
//   u7 copy b12 = b3                                 once
//   u8 product 8192 x 2048 x 2048: b9 = b5 * b12
//
// Units that read what they need once, as loops over rows and optimizers do, read it where it lies.
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// For what has been spilled since the last time. REQUIRES: units are tasks, whole; their waits are found later.
void fetch_spilled(Program& program);

}  // namespace weft::program
