// weft/collectives/reshard/timing.h -- predicts the time of each move of a reshard.
#pragma once
#include <span>
#include <vector>

#include "weft/collectives/reshard/reshard.h"

namespace weft::reshard {

struct MoveTime {
  double start = 0, end = 0;
};

struct Timing {
  std::vector<MoveTime> moves;
  double seconds = 0;
};

// A move between hosts starts when its sender has the data and both hosts have finished their
// earlier transfers in that direction. A move within a host takes no time.
// REQUIRES: the moves are of this reshard.
Timing time_moves(const Reshard& reshard, std::span<const Move> moves, const Links& links);

}  // namespace weft::reshard
