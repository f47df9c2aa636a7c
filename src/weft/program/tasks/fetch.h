// weft/program/tasks/fetch.h -- copies spilled tensors to the accelerator before repeated reads.
//
//   u7 product 8192 x 2048 x 2048: b9 = b5 * b3      spilled b3 would cross the bus repeatedly
//
//   u7 copy b12 = b3                                 once
//   u8 product 8192 x 2048 x 2048: b9 = b5 * b12
//
// Units that read their operands once, such as row loops and optimizers, read them from host memory
// directly.
#pragma once
#include "weft/program/tasks/program.h"

namespace weft::program {

// For buffers spilled since the last call. REQUIRES: units are whole tasks; waits are found later.
void fetch_spilled(Program& program);

}  // namespace weft::program
