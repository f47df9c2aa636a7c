// weft/collectives/compile/fuse.h -- fuses a receive with the send that forwards its message.
//
//   receive             output[2] from 0
//   send                output[2] to 2         receive_copy_send output[2] from 0 to 2
//
//   receive_reduce_copy input[2] from 0
//   send                input[2] to 2          receive_reduce_copy_send input[2] from 0 to 2
//
// It becomes receive_reduce_send if the stored sum is never read: it is not output, and is
// overwritten or unused. The message then bypasses memory.
//
// A send waits only for the writers of its data. If there is one writer and it wrote exactly that
// range, the send can run with it, so fusing never creates a cycle. Of several sends, the one with
// the longest path ahead is fused. Both messages share a channel, so moves that request different
// channels are not fused.
#pragma once
#include <cstdint>
#include <span>

#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

Instructions fuse(const Instructions& instructions);

// Splits the fused instructions `which` into two again; blocks and channels stay. `which` is
// sorted.
Instructions unfuse_instructions(const Instructions& instructions, std::span<const std::int32_t> which);

}  // namespace weft::collective
