// weft/collectives/compile/compile.h -- from moves to a chunk program that has been proved right.
//
//   moves -> dependence -> split -> fuse -> assign -> order -> waits -> instances -> check
//     ^                                       |
//     +----------------- cut -----------------+      where long messages would block each other
//
// Each pass is a function on values with a file of its own; passes.h shows what one of them did.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/compile/assign.h"

namespace weft::collective {

struct CompileOptions {
  Protocol protocol = Protocol::simple;
  std::int32_t instances = 1;
  std::int32_t max_channels = 32;
  std::int32_t max_blocks = 0;  // of a rank; 0: any number
  std::int32_t slots = 0;       // chunks a connection holds; 0: as the protocol has it
  bool fuse = true;
  bool join_blocks = true;  // see AssignLimits::join
};

// The program comes with the promise that check() finds nothing in it with that many slots. Fails where
// the moves do not compute the collective, or need more channels or blocks than allowed.
Result<Program> compile(const Moves& moves, const CompileOptions& options = {});

// Whether the numbers make sense together. What an instance may use, and what a connection holds.
Status check_options(const CompileOptions& options);
AssignLimits limits_of(const CompileOptions& options);
std::int32_t slots_of(const CompileOptions& options);

}  // namespace weft::collective
