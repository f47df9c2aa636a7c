// weft/device/cpu/pooling.h -- the largest or the mean element of every window of a plane, and back.
//
//   size 2, stride 2:   1 5 | 0 2
//                       3 4 | 1 7     max: 5 7    its gradient goes to the places of 5 and 7
//
// x is planes of height x width, y of out_height x out_width, both contiguous; a call works on planes
// [begin, end) of them. Padding counts as absent for the largest and as zeros for the mean. Among equals
// the first is the largest; a NaN in a window is its maximum, as in ops/.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::device::cpu {

struct Pooling {
  std::int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  std::int64_t size = 1, stride = 1;
  std::int64_t padding = 0, padding_width = 0;  // above, left
};

// What `scratch` must hold, aligned as a float, for the three that take it.
std::size_t scratch_bytes(const Pooling& pool);

void max_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch);
void max_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy,
                       const float* x, float* dx, void* scratch);

void avg_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch);
void avg_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy, float* dx);

}  // namespace weft::device::cpu
