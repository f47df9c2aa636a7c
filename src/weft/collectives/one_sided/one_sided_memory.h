// weft/collectives/one_sided/one_sided_memory.h -- the memory of a one-sided plan.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

inline Placement placement(const OneSided& plan) {
  return plan.in_place ? Placement::in_place : Placement::out_of_place;
}

// The least number of parts per chunk that every group of threadblocks divides; 0: more than
// `most`.
std::int32_t parts_of_chunk(const OneSided& plan, std::int32_t most);

// The whole chunks of each rank after input and output are resolved: see resolve() in program.h.
std::vector<RankMemory> memory_of(const OneSided& plan);

}  // namespace weft::collective
