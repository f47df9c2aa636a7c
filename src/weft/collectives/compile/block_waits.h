// weft/collectives/compile/block_waits.h -- inserts the waits that block order does not imply.
//
//   block 0                          block 1
//     0  receive input[3] publish      0  send input[5]
//                                      1  send input[3] after 0.0
//
// A block that has waited for a step also knows everything the other block knew at that step. Waits
// for known steps are omitted. So are waits for a step that must precede the message just received,
// because the message passed through that block. A step waits for at most one block; further waits
// become nops before it. So a nop is always followed by an instruction that waits itself.
#pragma once
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// REQUIRES: order() returned the instructions.
Program add_waits(const Instructions& ordered);

}  // namespace weft::collective
