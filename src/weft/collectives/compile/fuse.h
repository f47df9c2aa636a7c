// weft/collectives/compile/fuse.h -- what arrives and is sent on is received and sent in one go.
//
//   receive             output[2] from 0
//   send                output[2] to 2         receive_copy_send output[2] from 0 to 2
//
//   receive_reduce_copy input[2] from 0
//   send                input[2] to 2          receive_reduce_copy_send input[2] from 0 to 2
//
// and receive_reduce_send where nobody reads the stored sum: it is no output and is written over, or
// never looked at again. The message then never makes the way through memory.
//
// A send waits for nothing but the writers of what it sends. If there is one writer and it wrote exactly
// that, the send can be done there and then: fusing never closes a circle. Of several sends the one with
// the longest way before it is taken. Both messages will have one channel, so moves that ask for
// different ones are left apart.
#pragma once
#include <cstdint>
#include <span>

#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

Instructions fuse(const Instructions& instructions);

// The same with some fused instructions made two again; blocks and channels stay. `which` is sorted.
Instructions take_apart(const Instructions& instructions, std::span<const std::int32_t> which);

}  // namespace weft::collective
