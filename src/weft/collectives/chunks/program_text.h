// weft/collectives/chunks/program_text.h -- chunk programs and moves as readable text.
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
// A range is inclusive: input[2..4] is three chunks. `source -> target` is written if an op has
// both and they differ. The collective line may continue with `root 2`, `peer 3` or
// `counts [3, 1, 4]`, the protocol line with `at least 1024 bytes` and `at most 65536 bytes`. A
// custom collective lists its outputs: `want output[0] of 1 = input[0] of 0 + input[0] of 2`.
// Line breaks are whitespace, -- starts a comment, and a name that is not a plain word is written
// 'in quotes'.
//
// parse_*() reads the output of print() back to an equal value. (Slots that an op does not use are
// not printed; they are read back equal to the one it uses.)
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

// Accepts any syntactically valid program; check_form() decides whether it is correct (see
// check.h).
Result<Program> parse_program(std::string_view text);
std::string print(const Program& program);

// Fails if a place is outside its buffer.
Result<Moves> parse_moves(std::string_view text);
std::string print(const Moves& moves);
std::string print(const Move& move);  // "copy input[0] of 0 to output[0] of 1 on 2"

}  // namespace weft::collective
