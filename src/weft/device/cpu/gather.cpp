#include "weft/device/cpu/gather.h"

#include <algorithm>

namespace weft::device::cpu {

void gather_rows(const std::int32_t* positions, std::int64_t begin, std::int64_t end, const float* table,
                 std::int64_t table_rows, std::int64_t width, float* y, std::int64_t first) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t row = positions[i] - first;
    if (row >= 0 && row < table_rows)
      std::copy_n(table + row * width, width, y + i * width);
    else
      std::fill_n(y + i * width, width, 0.0f);
  }
}

void scatter_add_rows(const std::int32_t* positions, std::int64_t count, const float* x,
                      std::int64_t table_rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                      float* y, std::int64_t first) {
  if (end - begin == width)
    std::fill_n(y, table_rows * width, 0.0f);
  else
    for (std::int64_t row = 0; row < table_rows; ++row)
      std::fill(y + row * width + begin, y + row * width + end, 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = positions[i] - first;
    if (row < 0 || row >= table_rows) continue;
    const float* from = x + i * width;
    float* to = y + row * width;
    for (std::int64_t column = begin; column < end; ++column) to[column] += from[column];
  }
}

}  // namespace weft::device::cpu
