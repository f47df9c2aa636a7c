// weft/device/cpu/lanes_pointwise.h -- the rows of ops/pointwise_rows.h as loops over vectors.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/lanes_loops.h"
#include "weft/device/cpu/lanes_map.h"
#include "weft/device/cpu/lanes_math.h"
#include "weft/plan/ops/pointwise_rows.h"

namespace weft::device::cpu::WEFT_LANES {

namespace lane {

inline Vector maximum(Vector a, Vector b) { return choose((a < b) | (b != b), b, a); }  // NaN propagates
inline Vector minimum(Vector a, Vector b) { return choose((b < a) | (b != b), b, a); }

// Lanes outside power_near's domain use the library.
inline Vector pow_far(Vector a, Vector b) {
  Vector y = power_near(a, b);
  for (int k = 0; k < kWidth; ++k)
    if (!(a[k] >= kLeastBase && a[k] < kInfinity && std::fabs(b[k]) < kInfinity)) y[k] = std::pow(a[k], b[k]);
  return y;
}

// Powers common in models, with few roundings. Adding 0.0 turns -0 into +0, as pow does; and -inf
// to a power that is not an odd integer equals inf to that power.
inline Vector root(Vector x) { return choose(x == -kInfinity, splat(kInfinity), square_root(x + 0.0f)); }
inline Vector itself(Vector x) { return x; }
inline Vector square(Vector x) { return x * x; }
inline Vector cube(Vector x) { return x * x * x; }
inline Vector fourth(Vector x) { return square(square(x)); }
inline Vector root_of_cube(Vector x) { return magnitude(x) * root(x); }
inline Vector inverse(Vector x) { return 1.0f / x; }
inline Vector inverse_square(Vector x) { return square(1.0f / x); }
inline Vector inverse_root(Vector x) { return 1.0f / root(x); }

// sin and cos of any argument: lanes outside sine_near's domain use the library.
inline Vector sin_far(Vector x) {
  Vector y = sine_near(x);
  for (int k = 0; k < kWidth; ++k)
    if (std::fabs(x[k]) > kFarthestTurn) y[k] = std::sin(x[k]);
  return y;
}
inline Vector cos_far(Vector x) {
  Vector y = cosine_near(x);
  for (int k = 0; k < kWidth; ++k)
    if (std::fabs(x[k]) > kFarthestTurn) y[k] = std::cos(x[k]);
  return y;
}

}  // namespace lane

// The number type for the rows of ops/pointwise_rows.h: a vector at a time.
struct VectorNumbers {
  static Vector from(double value) { return splat(static_cast<float>(value)); }
  static Vector divide(Vector a, Vector b) { return a / b; }
  static Vector apply(ops::Function function, Vector x) {
    switch (function) {
      case ops::Function::exp: return exponential(x);
      case ops::Function::log: return logarithm(x);
      case ops::Function::tanh: return hyperbolic_tangent(x);
      case ops::Function::erf: return error_function(x);
      case ops::Function::sqrt: return square_root(x);
      case ops::Function::rsqrt: return 1.0f / square_root(x);
      case ops::Function::sin: return lane::sin_far(x);
      case ops::Function::cos: return lane::cos_far(x);
      case ops::Function::truncate: break;  // casts only
    }
    return x;
  }
  static Vector power(Vector a, Vector b) { return lane::pow_far(a, b); }
  // Rare in models and hard to get exactly right: uses the library, lane by lane.
  static Vector remainder(Vector a, Vector b) {
    for (int k = 0; k < kWidth; ++k) a[k] = std::fmod(a[k], b[k]);
    return a;
  }
  static Mask less(Vector a, Vector b) { return a < b; }
  static Mask equal(Vector a, Vector b) { return a == b; }
  static Vector choose(Mask which, Vector yes, Vector no) { return which ? yes : no; }
  static Vector max(Vector a, Vector b) { return lane::maximum(a, b); }
  static Vector min(Vector a, Vector b) { return lane::minimum(a, b); }
  static Vector sigmoid(Vector x) { return logistic(x); }
};

// A row's function: its vector implementation if it has one, else its definition.
template <std::size_t kRow, class... X>
Vector element(X... operands) {
  constexpr const auto& row = std::get<kRow>(ops::kPointwiseRows);
  const VectorNumbers n;
  const Vector x[] = {operands...};
  if constexpr (std::is_same_v<decltype(row.vectors), ops::Nothing>)
    return row.means(n, x);
  else
    return row.vectors(n, x);
}

inline Varying varying(const LaneOperand& x) { return {x.data}; }
inline Uniform uniform(const LaneOperand& x) { return {*x.data}; }

template <auto kOf>
void unary(std::int64_t n, const LaneOperand* x, float* y) {
  x[0].scalar ? map<kOf>(n, y, uniform(x[0])) : map<kOf>(n, y, varying(x[0]));
}

template <auto kOf, class... Known>
void binary(std::int64_t n, const LaneOperand* x, float* y, Known... known) {
  if (x[0].scalar)
    x[1].scalar ? map<kOf>(n, y, known..., uniform(x[0]), uniform(x[1]))
                : map<kOf>(n, y, known..., uniform(x[0]), varying(x[1]));
  else
    x[1].scalar ? map<kOf>(n, y, known..., varying(x[0]), uniform(x[1]))
                : map<kOf>(n, y, known..., varying(x[0]), varying(x[1]));
}

template <auto kOf>
void ternary(std::int64_t n, const LaneOperand* x, float* y) {
  x[0].scalar ? binary<kOf>(n, x + 1, y, uniform(x[0])) : binary<kOf>(n, x + 1, y, varying(x[0]));
}

[[gnu::flatten]] inline float farthest_from_zero(const float* x, std::int64_t n) {
  const auto larger = [](Vector a, Vector b) { return choose(a < b, b, a); };
  return fold(n, 0, larger, [=](std::int64_t i, auto lanes) { return magnitude(load(x + i, lanes, 0)); });
}

// Checks once per block, outside the loop, whether any lane needs the library.
template <auto kNear, auto kFar>
void trigonometric(std::int64_t n, const LaneOperand* x, float* y) {
  const bool near = farthest_from_zero(x[0].data, x[0].scalar ? 1 : n) <= kFarthestTurn;
  near ? unary<kNear>(n, x, y) : unary<kFar>(n, x, y);
}

// Whether any element is outside power_near's domain.
[[gnu::flatten]] inline bool has_far_base(const float* x, std::int64_t n) {
  const auto larger = [](Vector a, Vector b) { return choose(a < b, b, a); };
  return fold(n, 0, larger, [=](std::int64_t i, auto lanes) {
           const Vector a = load(x + i, lanes, 1);
           return choose((a >= kLeastBase) & (a < kInfinity), Vector{}, splat(1));
         }) > 0;
}
[[gnu::flatten]] inline bool has_far_exponent(const float* x, std::int64_t n) {
  const auto larger = [](Vector a, Vector b) { return choose(a < b, b, a); };
  return fold(n, 0, larger, [=](std::int64_t i, auto lanes) {
           return choose(magnitude(load(x + i, lanes, 1)) < kInfinity, Vector{}, splat(1));
         }) > 0;
}

// A scalar exponent is usually a small integer or a multiple of one half.
inline void power(std::int64_t n, const LaneOperand* x, float* y) {
  if (x[1].scalar) {
    const float exponent = *x[1].data;
    if (exponent == 2) return unary<lane::square>(n, x, y);
    if (exponent == 3) return unary<lane::cube>(n, x, y);
    if (exponent == 0.5f) return unary<lane::root>(n, x, y);
    if (exponent == -0.5f) return unary<lane::inverse_root>(n, x, y);
    if (exponent == -1) return unary<lane::inverse>(n, x, y);
    if (exponent == 1) return unary<lane::itself>(n, x, y);
    if (exponent == 1.5f) return unary<lane::root_of_cube>(n, x, y);
    if (exponent == 4) return unary<lane::fourth>(n, x, y);
    if (exponent == -2) return unary<lane::inverse_square>(n, x, y);
  }
  const bool far =
      has_far_base(x[0].data, x[0].scalar ? 1 : n) || has_far_exponent(x[1].data, x[1].scalar ? 1 : n);
  far ? binary<lane::pow_far>(n, x, y) : binary<power_near>(n, x, y);
}

template <std::size_t kRow>
void run_row(std::int64_t n, const LaneOperand* x, float* y) {
  constexpr const auto& row = std::get<kRow>(ops::kPointwiseRows);
  if constexpr (row.name == "pow")
    power(n, x, y);
  else if constexpr (row.name == "sin")
    trigonometric<sine_near, lane::sin_far>(n, x, y);
  else if constexpr (row.name == "cos")
    trigonometric<cosine_near, lane::cos_far>(n, x, y);
  else if constexpr (row.arity == 1)
    unary<element<kRow, Vector>>(n, x, y);
  else if constexpr (row.arity == 2)
    binary<element<kRow, Vector, Vector>>(n, x, y);
  else
    ternary<element<kRow, Vector, Vector, Vector>>(n, x, y);
}

template <std::size_t... kRow>
constexpr auto row_loops(std::index_sequence<kRow...>) {
  return std::array{&run_row<kRow>...};
}
inline constexpr auto kRowLoops = row_loops(std::make_index_sequence<ops::kPointwiseCount>());

inline void run_lane(Lane which, std::int64_t n, const LaneOperand* x, float* y) {
  kRowLoops[static_cast<std::size_t>(which)](n, x, y);
}

}  // namespace weft::device::cpu::WEFT_LANES
