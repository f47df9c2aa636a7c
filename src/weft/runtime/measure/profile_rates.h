// weft/runtime/measure/profile_rates.h -- how fast this machine copies, reduces and multiplies.
//
//   copy          bytes copied a second          by 1 .. all cores, on buffers that a core's cache holds
//   reduce f32    bytes read a second                 and on buffers that no cache does
//   multiply f32  operations a second, one core
//   call          calls a second of the shortest kernel there is, one core
//
// Each rate is the best of several short runs: what other processes take meanwhile is not
// the machine's doing.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "weft/predict/cost/statistics.h"

namespace weft::measure {

struct RateSizes {
  std::int64_t cached_bytes = 256 << 10, large_bytes = 64 << 20;
  std::int64_t matrix_side = 512;
  std::int32_t most_threads = 0;  // 0: as many as there are cores
  std::chrono::milliseconds each{20};
};

std::vector<cost::Rate> measure_rates(const RateSizes& sizes);

}  // namespace weft::measure
