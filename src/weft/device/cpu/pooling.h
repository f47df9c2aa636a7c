// weft/device/cpu/pooling.h -- max and average pooling, and their gradients.
//
//   size 2, stride 2:   1 5 | 0 2
//                       3 4 | 1 7     max: 5 7    its gradient goes to the positions of 5 and 7
//
// x is planes of height x width, y of out_height x out_width, both contiguous. A call works on
// planes [begin, end). Padding is ignored by the maximum and counts as zeros for the average. Of
// equal maxima the first counts; a NaN in a window is its maximum, as in ops/.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::device::cpu {

struct Pooling {
  std::int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  std::int64_t size = 1, stride = 1;
  std::int64_t padding = 0, padding_width = 0;  // above, left
};

// Scratch bytes for the three functions that have `scratch`, aligned for float.
std::size_t scratch_bytes(const Pooling& pool);

void max_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch);
void max_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy,
                       const float* x, float* dx, void* scratch);

void avg_pool(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* x, float* y,
              void* scratch);
void avg_pool_gradient(const Pooling& pool, std::int64_t begin, std::int64_t end, const float* dy, float* dx);

}  // namespace weft::device::cpu
