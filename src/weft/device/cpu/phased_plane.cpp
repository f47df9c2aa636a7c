#include "weft/device/cpu/phased_plane.h"

#include <algorithm>

#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {

void split_plane(const PhasedPlane& plane, const float* x, float* line) {
  const std::int64_t s = plane.stride;
  if (s == 1)
    return copy_rows(plane.height, plane.width, x, plane.width,
                     line + plane.padding * plane.columns + plane.padding_width, plane.columns);
  for (std::int64_t top = 0; top < std::min(s, plane.height); ++top) {
    const std::int64_t row = top + plane.padding, rows = (plane.height - top + s - 1) / s;
    const float* const from = x + top * plane.width;
    const auto to = [&](std::int64_t left) {
      const std::int64_t column = left + plane.padding_width;
      return line + (row % s * s + column % s) * plane.phase + row / s * plane.columns + column / s;
    };
    if (s == 2) {
      split_rows(rows, plane.width, from, s * plane.width, to(0), to(1), plane.columns);
      continue;
    }
    for (std::int64_t left = 0; left < std::min(s, plane.width); ++left)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t t = 0; left + t * s < plane.width; ++t)
          to(left)[r * plane.columns + t] = from[r * s * plane.width + left + t * s];
  }
}

void join_plane(const PhasedPlane& plane, const float* line, float* x) {
  const std::int64_t s = plane.stride;
  for (std::int64_t top = 0; top < std::min(s, plane.height); ++top)
    for (std::int64_t left = 0; left < std::min(s, plane.width); ++left) {
      const std::int64_t row = top + plane.padding, column = left + plane.padding_width;
      const std::int64_t rows = (plane.height - top + s - 1) / s, n = (plane.width - left + s - 1) / s;
      const float* from =
          line + (row % s * s + column % s) * plane.phase + row / s * plane.columns + column / s;
      float* to = x + top * plane.width + left;
      if (s == 1) return copy_rows(rows, n, from, plane.columns, to, plane.width);
      for (std::int64_t r = 0; r < rows; ++r, from += plane.columns, to += s * plane.width)
        for (std::int64_t t = 0; t < n; ++t) to[t * s] = from[t];
    }
}

}  // namespace weft::device::cpu
