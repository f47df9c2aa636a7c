// weft/collectives/chunks/program_text.h -- chunk programs and moves as text that people read, write and compare.
//
//   program all_reduce_pair
//   collective all_reduce, 2 ranks, 2 chunks, in place
//   protocol Simple, 1 channel
//
//   rank 0: input 2, output 0, scratch 0
//     block 0: send to 1, receive from 1, channel 0
//       0  send input[1]
//       1  receive_reduce_copy_send input[0]
//       2  receive input[1] after 0.0 publish
//
//   moves all_reduce_pair
//   collective all_reduce, 2 ranks, 2 chunks, in place
//   scratch 1
//
//   reduce input[0] of 0 into input[0] of 1
//   copy input[0..1] of 1 to output[0..1] of 0 on 2
//
// A range is inclusive: input[2..4] is three chunks. `source -> target` is written where an op has both
// and they differ. The line of a collective goes on where there is more to say, `root 2`, `peer 3`,
// `counts [3, 1, 4]`, and that of the protocol, `at least 1024 bytes`, `at most 65536 bytes`. A custom
// collective lists what it promises: `want output[0] of 1 = input[0] of 0 + input[0] of 2`. Line ends are
// blanks, -- starts a comment, and a name that is no plain word stands 'in quotes'.
//
// What print() writes, parse_*() reads back to an equal value. (Of the slots that an op has no use for
// nothing is written; they come back equal to the one it uses.)
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

// Reads any program that can be written down, right or wrong: check_form() judges it (see check.h).
Result<Program> parse_program(std::string_view text);
std::string print(const Program& program);

// Reads moves whose places all lie within the buffers.
Result<Moves> parse_moves(std::string_view text);
std::string print(const Moves& moves);
std::string print(const Move& move);  // "copy input[0] of 0 to output[0] of 1 on 2"

}  // namespace weft::collective
