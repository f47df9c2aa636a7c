// weft/collectives/chunks/rings.h -- the path that data takes round the ranks, channel by channel.
//
//   channel 0: 0 -> 1 -> 3 -> 2 -> 0      a ring
//   channel 1: 2 -> 3 -> 1 -> 0           a chain
//
// A program whose ranks all send to one rank at most on a channel draws rings or chains; others draw
// something else, and have neither.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

struct Circuit {
  std::int32_t channel = 0;
  bool closed = false;              // a ring: the last leads to the first
  std::vector<std::int32_t> ranks;  // every rank once; a ring begins with rank 0
};

// One a channel, all closed or all open. Fails where a channel branches, or misses a rank.
Result<std::vector<Circuit>> circuits(const Program& program);

}  // namespace weft::collective
