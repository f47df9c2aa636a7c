// weft/runtime/measure/profile_rates.h -- measures how fast this machine copies, reduces and multiplies.
//
//   copy          bytes copied per second        by 1 .. all cores, on buffers that fit into a core's cache
//   reduce f32    bytes read per second              and on buffers larger than any cache
//   multiply f32  operations per second, one core
//   call          calls per second of the shortest kernel, one core
//
// Each rate is the best of several short runs, to exclude the effect of other processes.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "weft/predict/cost/statistics.h"

namespace weft::measure {

struct RateSizes {
  std::int64_t cached_bytes = 256 << 10, large_bytes = 64 << 20;
  std::int64_t matrix_side = 512;
  std::int32_t most_threads = 0;  // 0: one per core
  std::chrono::milliseconds each{20};
};

std::vector<cost::Rate> measure_rates(const RateSizes& sizes);

}  // namespace weft::measure
