// weft/device/cpu/rotary.h -- rotary embedding: rotates pairs of features by an angle that grows
// with the position.
//
//   angle = p * base^(-i / half)                 p a position, i = 0 .. half-1
//   y[i]        = x[i] cos - x[i + half] sin
//   y[i + half] = x[i + half] cos + x[i] sin
//
// x is rows of 2 * half contiguous floats, [.., positions, between]: `between` is the number of
// consecutive rows that share a position (the heads of [batch, position, head, feature], or 1).
#pragma once
#include <cstdint>

namespace weft::device::cpu {

struct Rotary {
  std::int64_t positions = 0, between = 1, half = 0;
  bool inverse = false;  // inverse rotation: the gradient
};

// Cosines and sines of positions first .. first+positions-1, `half` per position, computed once for
// all rows. `first` is not 0 if x is a slice that begins at a later position.
void rotary_table(const Rotary& rotary, double base, std::int64_t first, float* cosines, float* sines);

// Rows [begin, end); y may alias x.
void rotate_rows(const Rotary& rotary, std::int64_t begin, std::int64_t end, const float* x,
                 const float* cosines, const float* sines, float* y);

}  // namespace weft::device::cpu
