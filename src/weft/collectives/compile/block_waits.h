// weft/collectives/compile/block_waits.h -- threadblocks wait for each other where their order does not say it.
//
//   block 0                          block 1
//     0  receive input[3] publish      0  send input[5]
//                                      1  send input[3] after 0.0
//
// What a block has waited for once it knows for good, and with it all that the other block knew then; a
// wait for something known is left out. So is one for a step that the message just received must have
// come after, because it went through that block on its way round. A step waits for one block: others
// are nops before it, so that a nop is always followed by an instruction that waits itself.
#pragma once
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// REQUIRES: instructions that order() returned
Program add_waits(const Instructions& ordered);

}  // namespace weft::collective
