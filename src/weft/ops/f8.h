// weft/ops/f8.h -- the nearest number of eight bits, as an operator.
//
//   e4m3   a sign, 4 bits of exponent, 3 of fraction: up to 448, no infinity
//   e5m2   a sign, 5 bits of exponent, 2 of fraction: up to 57344
//
// y has the type of x, and of its numbers those alone that eight bits hold; what is too large becomes NaN, which no
// scaled number does. As with a cast, reference semantics do not round: they are exact where kernels are not.
// Pointwise: see pointwise.h.
#pragma once
#include <algorithm>
#include <cmath>

#include "weft/ops/operator.h"
#include "weft/plan/graph.h"

namespace weft::ops {

const Operator& e4m3();
const Operator& e5m2();
inline bool is_f8(const plan::Operator& op) { return &op == &e4m3() || &op == &e5m2(); }

constexpr double top_of_f8(int fraction_bits) { return fraction_bits == 3 ? 448 : 57344; }

// By the definition; of two that are as near the even one.
inline double nearest_f8(double x, int fraction_bits) {
  if (x == 0 || std::isnan(x)) return x;
  const int least = fraction_bits == 3 ? -6 : -14;  // exponent of normal numbers; smaller ones share it
  const int exponent = std::isinf(x) ? 128 : std::max(std::ilogb(x), least);
  const double units = std::nearbyint(std::ldexp(x, fraction_bits - exponent));
  const double y = std::ldexp(units, exponent - fraction_bits);
  return std::abs(y) > top_of_f8(fraction_bits) ? NAN : y;
}

// Whether both operands of a product are such numbers, moved or cast since.
bool multiplies_f8(const plan::NodeView& product);

}  // namespace weft::ops
