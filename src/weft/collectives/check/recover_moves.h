// weft/collectives/check/recover_moves.h -- recovers the algorithm that threadblocks carry out.
//
//   gpu 0 tb 0   put input[0] to scratch[2] of 1, signal        copy   input[0] of 0 to scratch[2] of 1
//   gpu 1 tb 0   wait, reduce input[0] and scratch[2]     -->   reduce scratch[2] of 1 into input[0] of 1
//                to input[0]
//
// One run is recorded move by move. If the checker found no fault, every run computes the same, so
// one is enough. Together with compile(), this converts a plan of one format to any other.
//
// A message in flight is read where its sender read it, until that chunk is overwritten; before
// that, it is copied to scratch of its receiver. A sum that is sent on but not kept is computed in
// scratch of the sender.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// An error if the run does not terminate.
// REQUIRES: check() found neither a race nor a wrong result; otherwise the moves are meaningless.
Result<Moves> recover_moves(const Actions& actions, std::string name);

}  // namespace weft::collective
