// weft/collectives/check/recover_moves.h -- from what threadblocks do back to the algorithm they carry out.
//
//   gpu 0 tb 0   put input[0] to scratch[2] of 1, signal        copy   input[0] of 0 to scratch[2] of 1
//   gpu 1 tb 0   wait, reduce input[0] and scratch[2]     -->   reduce scratch[2] of 1 into input[0] of 1
//                to input[0]
//
// One run is written down move by move; where the checker has found nothing every run computes the same,
// so one is enough. With compile() after it, a plan of one format becomes a program of any other.
//
// A message on its way is read where its sender read it, for as long as that chunk holds; before it is
// overwritten the message goes to scratch of its receiver. A sum that is sent on but not kept is made in
// scratch of the sender.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// An error where the run does not come to an end.
// REQUIRES: check() has found neither a race nor a wrong result, or the moves mean nothing.
Result<Moves> recover_moves(const Actions& actions, std::string name);

}  // namespace weft::collective
