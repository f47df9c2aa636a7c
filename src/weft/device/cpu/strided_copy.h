// weft/device/cpu/strided_copy.h -- copies a box of elements between two layouts.
//
//   transpose  y[j, i] = x[i, j]      sizes {3, 4}: from strides {1, 3}, to strides {4, 1}
//   slice      y = x[.., 2:5]         sizes {8, 3}: from x + 2, strides {10, 1}, to strides {3, 1}
//   broadcast  y[i, j] = x[j]         sizes {8, 3}: from strides {0, 1}
//   concat, pad                       one copy per operand into its range of y; pad fills first
//
// Strides are in elements and may be zero (in `from`) or negative. Source and target must not
// overlap.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::device::cpu {

constexpr std::size_t kMostCopyRank = 8;

// REQUIRES: one stride per size, at most kMostCopyRank of them; element_bytes is 1, 2, 4 or 8.
void strided_copy(std::span<const std::int64_t> sizes, const void* from,
                  std::span<const std::int64_t> from_strides, void* to,
                  std::span<const std::int64_t> to_strides, std::size_t element_bytes);

// Writes `elements` copies of one element, whose bytes `value` points at.
void fill(void* to, std::int64_t elements, const void* value, std::size_t element_bytes);

}  // namespace weft::device::cpu
