// weft/collectives/chunks/rings.h -- the rings or chains of a program, one per channel.
//
//   channel 0: 0 -> 1 -> 3 -> 2 -> 0      a ring
//   channel 1: 2 -> 3 -> 1 -> 0           a chain
//
// A program has rings or chains if on each channel every rank sends to at most one rank.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

struct Circuit {
  std::int32_t channel = 0;
  bool closed = false;              // a ring: the last rank sends to the first
  std::vector<std::int32_t> ranks;  // every rank once; a ring starts with rank 0
};

// One per channel, all closed or all open. Fails if a channel branches or misses a rank.
Result<std::vector<Circuit>> circuits(const Program& program);

}  // namespace weft::collective
