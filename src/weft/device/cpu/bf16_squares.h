// weft/device/cpu/bf16_squares.h -- packs blocks of a bf16 matrix for instructions that multiply
// pairs.
//
// A square is 16 lines (rows of A or columns of B) by 32 depths: 1 KiB, 16 registers. Squares of
// the same lines follow each other along the depth, and strips of lines follow each other.
//
//   by line     the 32 depths of a line are contiguous: A, from which a tile or a broadcast loads row pairs
//   by pair     one pair of depths of all 16 lines is contiguous: B
//
// Lines and depths past the edge are zero-filled and not read.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "weft/device/cpu/gemm_packing.h"

#define WEFT_AVX512 gnu::target("avx512f,avx512bw,avx512vl,avx512dq")

namespace weft::device::cpu {

constexpr std::int64_t kSquareLines = 16, kSquareDepth = 32, kSquareElements = kSquareLines * kSquareDepth;

enum class SquareOrder : bool { by_line, by_pair };

typedef std::uint32_t SquarePairs [[gnu::vector_size(64), gnu::may_alias]];

// Transposes 16 x 16 pairs: single pairs, then twos of pairs within 128-bit lanes, then the lanes.
[[gnu::always_inline, WEFT_AVX512]] inline void transpose_square(SquarePairs (&x)[16]) {
  SquarePairs y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    y[i + 1] =
        __builtin_shufflevector(x[i], x[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      x[i + 2 * j] = __builtin_shufflevector(y[i + j], y[i + j + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25,
                                             12, 13, 28, 29);
      x[i + 2 * j + 1] = __builtin_shufflevector(y[i + j], y[i + j + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11,
                                                 26, 27, 14, 15, 30, 31);
    }
    // x[4 i + j] holds column j of every four, for rows 4 i to 4 i + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    SquarePairs even[2], odd[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const SquarePairs low = x[8 * half + j], high = x[8 * half + 4 + j];
      even[half] =
          __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      odd[half] =
          __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    y[j] =
        __builtin_shufflevector(even[0], even[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    y[4 + j] =
        __builtin_shufflevector(odd[0], odd[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    y[8 + j] =
        __builtin_shufflevector(even[0], even[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    y[12 + j] =
        __builtin_shufflevector(odd[0], odd[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// Loads one depth of 16 contiguous lines, masked by `there`: the low half of each pair.
[[gnu::always_inline, WEFT_AVX512]] inline SquarePairs halves_of(const Bf16* from, __mmask16 there) {
  typedef std::uint16_t Halves [[gnu::vector_size(32), gnu::may_alias]];
  return __builtin_convertvector((Halves)_mm256_maskz_loadu_epi16(there, from), SquarePairs);
}

// Packs `lines` lines and `depth` depths, at most 16 and 32.
template <SquareOrder kOrder>
[[WEFT_AVX512]] inline void pack_square(const Lines<Bf16>& of, std::int64_t lines, std::int64_t depth,
                                        const Bf16* from, Bf16* to) {
  SquarePairs square[16];
  if (of.depth_step == 1) {
    const auto there = static_cast<__mmask32>((std::uint64_t{1} << depth) - 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      square[i] =
          i < lines ? (SquarePairs)_mm512_maskz_loadu_epi16(there, from + i * of.line_step) : SquarePairs{};
    if constexpr (kOrder == SquareOrder::by_pair) transpose_square(square);
  } else {
    const auto there = static_cast<__mmask16>((std::uint32_t{1} << lines) - 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const Bf16* const first = from + 2 * i * of.depth_step;
      square[i] = SquarePairs{};
      if (2 * i < depth) square[i] = halves_of(first, there);
      if (2 * i + 1 < depth) square[i] |= halves_of(first + of.depth_step, there) << 16;
    }
    if constexpr (kOrder == SquareOrder::by_line) transpose_square(square);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) *reinterpret_cast<SquarePairs*>(to + i * kSquareDepth) = square[i];
}

// Packs all strips; the strip of line i begins at to + i * squares * kSquareDepth. REQUIRES: one
// step is 1.
template <SquareOrder kOrder>
[[WEFT_AVX512]] inline void pack_squares(const Lines<Bf16>& lines, Bf16* to) {
  const std::int64_t squares = (lines.depth + kSquareDepth - 1) / kSquareDepth;
  // Contiguous lines share cache lines: then pack all strips of a depth before the next depth.
  const std::int64_t strips = (lines.count + kSquareLines - 1) / kSquareLines;
  const bool beside = lines.depth_step != 1;
  for (std::int64_t i = 0; i < strips * squares; ++i) {
    const std::int64_t strip = beside ? i % strips : i / squares, square = beside ? i / strips : i % squares;
    const std::int64_t line = strip * kSquareLines, depth = square * kSquareDepth;
    pack_square<kOrder>(lines, std::min(kSquareLines, lines.count - line),
                        std::min(kSquareDepth, lines.depth - depth),
                        lines.from + line * lines.line_step + depth * lines.depth_step,
                        to + (strip * squares + square) * kSquareElements);
  }
}

}  // namespace weft::device::cpu
#endif
