// weft/collectives/one_sided/one_sided_memory.h -- the memory a one-sided plan works on, counted in parts of chunks.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

inline Placement placement(const OneSided& plan) {
  return plan.in_place ? Placement::in_place : Placement::out_of_place;
}

// The least number of parts of a chunk that every group of threadblocks divides; 0: more than `most`.
std::int32_t parts_of_chunk(const OneSided& plan, std::int32_t most);

// What each rank has once input and output are resolved: see resolve() in program.h. In whole chunks.
std::vector<RankMemory> memory_of(const OneSided& plan);

}  // namespace weft::collective
