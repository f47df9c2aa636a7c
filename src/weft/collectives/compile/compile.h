// weft/collectives/compile/compile.h -- compiles moves to a chunk program and proves it correct.
//
//   moves -> dependence -> split -> fuse -> assign -> order -> waits -> instances -> check
//     ^                                       |
//     +----------------- cut -----------------+      where long messages would block each other
//
// Each pass is a function on values in its own file; passes.h prints the result of a pass.
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
  std::int32_t max_blocks = 0;  // per rank; 0: unlimited
  std::int32_t slots = 0;       // chunks per connection; 0: the protocol's default
  bool fuse = true;
  bool join_blocks = true;  // see AssignLimits::join
};

// check() finds no fault in the returned program with that many slots. Fails if the moves do not
// compute the collective, or need more channels or blocks than allowed.
Result<Program> compile(const Moves& moves, const CompileOptions& options = {});

// Checks that the options are consistent; the limits of one instance; the slots per connection.
Status check_options(const CompileOptions& options);
AssignLimits limits_of(const CompileOptions& options);
std::int32_t slots_of(const CompileOptions& options);

}  // namespace weft::collective
