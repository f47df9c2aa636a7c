// weft/device/cpu/gemm_packing.h -- packs blocks of a matrix in the order a gemm kernel reads them.
//
//   lines   0 1 2 3 4 5 6 7 8 9         A line is a row of A or a column of B; the depth is the dimension
//          +---------------+---+        that the product sums over. Strips of neighbouring lines follow each
//   depth  | strip 0       | 1 |        other. Within a strip all of depth 0 comes first, then all of
//          +---------------+---+        depth 1, so that the kernel reads sequentially.
//
// The last strip is padded with zeros. Narrow elements are widened. Runs on the calling thread and
// allocates nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/narrow.h"

namespace weft::device::cpu {

// A logical matrix, transposed or not: element (row, column) is data[row * down + column * across].
template <class T>
struct View {
  const T* data;
  std::int64_t down, across;

  View(Transpose transposed, const T* start, std::int64_t stride)
      : data(start),
        down(transposed == Transpose::no ? stride : 1),
        across(transposed == Transpose::no ? 1 : stride) {}

  const T* at(std::int64_t row, std::int64_t column) const { return data + row * down + column * across; }
};

// The lines of a block: element (line, d) is from[line * line_step + d * depth_step].
template <class T>
struct Lines {
  const T* from;
  std::int64_t count, line_step;
  std::int64_t depth, depth_step;
};

// Packs a full strip of kSide lines: to[d * kSide + i] = scale * (line i at depth d), for d of
// [begin, end).
template <std::int64_t kSide, class From, class T>
void pack_strip(const Lines<From>& lines, std::int64_t begin, std::int64_t end, T scale, T* __restrict to) {
  const From* const from = lines.from;
  const std::int64_t line_step = lines.line_step, depth_step = lines.depth_step;
  std::int64_t d = begin;
  if constexpr (sizeof(T) == 4 && kSide % 4 == 0) {
    typedef T Four [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(alignof(T))]];
    const auto load = [scale](const From* place) {
      Four four;
      if constexpr (std::is_same_v<From, T>)
        four = *reinterpret_cast<const Four*>(place);
      else
        NarrowLanes<4>::widen(place, reinterpret_cast<T*>(&four));
      return scale * four;
    };
    const auto save = [](Four four, T* place) { *reinterpret_cast<Four*>(place) = four; };
    if (line_step == 1)
      for (; d < end; ++d)
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kSide; i += 4) save(load(from + d * depth_step + i), to + d * kSide + i);
    // Lines contiguous along the depth: transpose 4 x 4 blocks in registers.
    for (; depth_step == 1 && d + 4 <= end; d += 4)
      for (std::int64_t i = 0; i < kSide; i += 4) {
        const From* line = from + d + i * line_step;
        const Four l0 = load(line), l1 = load(line + line_step);
        const Four l2 = load(line + 2 * line_step), l3 = load(line + 3 * line_step);
        const Four low01 = __builtin_shufflevector(l0, l1, 0, 4, 1, 5);
        const Four high01 = __builtin_shufflevector(l0, l1, 2, 6, 3, 7);
        const Four low23 = __builtin_shufflevector(l2, l3, 0, 4, 1, 5);
        const Four high23 = __builtin_shufflevector(l2, l3, 2, 6, 3, 7);
        T* square = to + d * kSide + i;
        save(__builtin_shufflevector(low01, low23, 0, 1, 4, 5), square);
        save(__builtin_shufflevector(low01, low23, 2, 3, 6, 7), square + kSide);
        save(__builtin_shufflevector(high01, high23, 0, 1, 4, 5), square + 2 * kSide);
        save(__builtin_shufflevector(high01, high23, 2, 3, 6, 7), square + 3 * kSide);
      }
  }
  for (; d < end; ++d)
    for (std::int64_t i = 0; i < kSide; ++i)
      to[d * kSide + i] = scale * widened(from[d * depth_step + i * line_step]);
}

// Calls each(first, side) for every strip of `lines`, with a compile-time side. Sides::next(lines
// left, then) passes each side to `then`.
template <class Sides, class Each>
void for_strips(std::int64_t lines, Each&& each) {
  std::int64_t first = 0;
  while (first < lines)
    Sides::next(lines - first, [&](auto side) {
      each(first, side);
      first += side;
    });
}

// Packs all strips; the strip of line i begins at to + i * depth.
template <class Sides, class From, class T>
void pack(const Lines<From>& lines, T scale, T* to) {
  // If lines are contiguous, neighbouring strips share cache lines: pack a few depths of every
  // strip before those are evicted. With power-of-two strides they would be evicted early
  // otherwise.
  const std::int64_t together = lines.line_step == 1 ? 16 : lines.depth;
  for (std::int64_t begin = 0; begin < lines.depth; begin += together) {
    const std::int64_t end = std::min(begin + together, lines.depth);
    for_strips<Sides>(lines.count, [&](std::int64_t first, auto side) {
      Lines<From> strip = lines;
      strip.from += first * lines.line_step;
      strip.count = std::min<std::int64_t>(side, lines.count - first);
      T* const there = to + first * lines.depth;
      if (strip.count == side) return pack_strip<side>(strip, begin, end, scale, there);
      for (std::int64_t d = begin; d < end; ++d)
        for (std::int64_t i = 0; i < side; ++i)
          there[d * side + i] = i < strip.count
                                    ? scale * widened(strip.from[d * strip.depth_step + i * strip.line_step])
                                    : T(0);
    });
  }
}

}  // namespace weft::device::cpu
