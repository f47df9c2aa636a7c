// weft/device/cpu/lanes_pointwise.h -- every Lane as a function of vectors, and which to run.
#pragma once
#include <cmath>
#include <cstdint>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/lanes_loops.h"
#include "weft/device/cpu/lanes_map.h"
#include "weft/device/cpu/lanes_math.h"

namespace weft::device::cpu::WEFT_LANES {

namespace lane {  // one function a Lane, by its name

inline Vector truth(Mask which) { return choose(which, splat(1), Vector{}); }

inline Vector add(Vector a, Vector b) { return a + b; }
inline Vector sub(Vector a, Vector b) { return a - b; }
inline Vector mul(Vector a, Vector b) { return a * b; }
inline Vector div(Vector a, Vector b) { return a / b; }
inline Vector neg(Vector x) { return -x; }

inline Vector maximum(Vector a, Vector b) { return choose((a < b) | (b != b), b, a); }  // a NaN is never lost
inline Vector minimum(Vector a, Vector b) { return choose((b < a) | (b != b), b, a); }
inline Vector abs(Vector x) { return maximum(x, -x); }
inline Vector relu(Vector x) { return choose(x < 0.0f, Vector{}, x); }

inline Vector equal(Vector a, Vector b) { return truth(a == b); }
inline Vector not_equal(Vector a, Vector b) { return truth(a != b); }
inline Vector less(Vector a, Vector b) { return truth(a < b); }
inline Vector less_equal(Vector a, Vector b) { return truth(a <= b); }
inline Vector greater(Vector a, Vector b) { return truth(a > b); }
inline Vector greater_equal(Vector a, Vector b) { return truth(a >= b); }
inline Vector logical_and(Vector a, Vector b) { return a * b; }
inline Vector logical_or(Vector a, Vector b) { return a + b - a * b; }
inline Vector logical_not(Vector x) { return 1.0f - x; }
inline Vector select(Vector which, Vector yes, Vector no) { return choose(which == 0.0f, no, yes); }

inline Vector rsqrt(Vector x) { return 1.0f / square_root(x); }

// Rare in a model and hard to get exactly right: the library's, a lane at a time.
inline Vector mod(Vector a, Vector b) {
  for (int k = 0; k < kWidth; ++k) a[k] = std::fmod(a[k], b[k]);
  return a;
}
// Beyond the reach of power_near, the library's.
inline Vector pow_far(Vector a, Vector b) {
  Vector y = power_near(a, b);
  for (int k = 0; k < kWidth; ++k)
    if (!(a[k] >= kLeastBase && a[k] < kInfinity && std::fabs(b[k]) < kInfinity)) y[k] = std::pow(a[k], b[k]);
  return y;
}

// The powers that models have, by few roundings. 0.0 makes +0 of a -0, as pow does; and -inf to any power that
// is no odd number is what inf is.
inline Vector root(Vector x) { return choose(x == -kInfinity, splat(kInfinity), square_root(x + 0.0f)); }
inline Vector itself(Vector x) { return x; }
inline Vector square(Vector x) { return x * x; }
inline Vector cube(Vector x) { return x * x * x; }
inline Vector fourth(Vector x) { return square(square(x)); }
inline Vector root_of_cube(Vector x) { return magnitude(x) * root(x); }
inline Vector inverse(Vector x) { return 1.0f / x; }
inline Vector inverse_square(Vector x) { return square(1.0f / x); }
inline Vector inverse_root(Vector x) { return 1.0f / root(x); }

// sin and cos of any number: beyond the reach of sine_near, the library's.
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

inline constexpr float kInverseSqrt2 = 0.707106781f;
inline constexpr float kInverseSqrt2Pi = 0.398942280f;
inline constexpr float kGeluCubic = 0.044715f;
inline constexpr float kGeluSteepness = 0.797884561f;  // sqrt(2 / pi)

inline Vector normal_below(Vector x) { return 0.5f * (1.0f + error_function(x * kInverseSqrt2)); }
inline Vector normal_density(Vector x) { return kInverseSqrt2Pi * exponential(-0.5f * (x * x)); }
inline Vector gelu(Vector x) { return x * normal_below(x); }
inline Vector gelu_gradient(Vector dy, Vector x) { return dy * (normal_below(x) + x * normal_density(x)); }

// (1 + tanh u) / 2 is the logistic function of 2u: one exp, and no cancelling where tanh nears -1.
inline Vector gelu_gate(Vector x) { return logistic((2 * kGeluSteepness) * (x + kGeluCubic * (x * x * x))); }
inline Vector gelu_tanh(Vector x) { return x * gelu_gate(x); }
// The slope of the gate is 2 u' gate (1 - gate), as that of tanh is 1 - tanh^2.
inline Vector gelu_tanh_gradient(Vector dy, Vector x) {
  const Vector gate = gelu_gate(x);
  const Vector inner = (2 * kGeluSteepness) * (1.0f + (3 * kGeluCubic) * (x * x));
  return dy * (gate + x * (gate * (1.0f - gate)) * inner);
}

inline Vector silu(Vector x) { return x * logistic(x); }
inline Vector silu_gradient(Vector dy, Vector x) {
  const Vector s = logistic(x);
  return dy * (s * (1.0f + x * (1.0f - s)));
}

}  // namespace lane

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

// A block looks first: whether any lane needs the library is asked once, outside the loop.
template <auto kNear, auto kFar>
void trigonometric(std::int64_t n, const LaneOperand* x, float* y) {
  const bool near = farthest_from_zero(x[0].data, x[0].scalar ? 1 : n) <= kFarthestTurn;
  near ? unary<kNear>(n, x, y) : unary<kFar>(n, x, y);
}

// Whether any element is outside what power_near takes.
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

// One exponent for all is mostly a small number or half of one.
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

inline void run_lane(Lane which, std::int64_t n, const LaneOperand* x, float* y) {
  switch (which) {
    case Lane::add: return binary<lane::add>(n, x, y);
    case Lane::sub: return binary<lane::sub>(n, x, y);
    case Lane::mul: return binary<lane::mul>(n, x, y);
    case Lane::div: return binary<lane::div>(n, x, y);
    case Lane::mod: return binary<lane::mod>(n, x, y);
    case Lane::pow: return power(n, x, y);
    case Lane::maximum: return binary<lane::maximum>(n, x, y);
    case Lane::minimum: return binary<lane::minimum>(n, x, y);
    case Lane::neg: return unary<lane::neg>(n, x, y);
    case Lane::abs: return unary<lane::abs>(n, x, y);
    case Lane::equal: return binary<lane::equal>(n, x, y);
    case Lane::not_equal: return binary<lane::not_equal>(n, x, y);
    case Lane::less: return binary<lane::less>(n, x, y);
    case Lane::less_equal: return binary<lane::less_equal>(n, x, y);
    case Lane::greater: return binary<lane::greater>(n, x, y);
    case Lane::greater_equal: return binary<lane::greater_equal>(n, x, y);
    case Lane::logical_and: return binary<lane::logical_and>(n, x, y);
    case Lane::logical_or: return binary<lane::logical_or>(n, x, y);
    case Lane::logical_not: return unary<lane::logical_not>(n, x, y);
    case Lane::select: return ternary<lane::select>(n, x, y);
    case Lane::exp: return unary<exponential>(n, x, y);
    case Lane::log: return unary<logarithm>(n, x, y);
    case Lane::sqrt: return unary<square_root>(n, x, y);
    case Lane::rsqrt: return unary<lane::rsqrt>(n, x, y);
    case Lane::sin: return trigonometric<sine_near, lane::sin_far>(n, x, y);
    case Lane::cos: return trigonometric<cosine_near, lane::cos_far>(n, x, y);
    case Lane::tanh: return unary<hyperbolic_tangent>(n, x, y);
    case Lane::erf: return unary<error_function>(n, x, y);
    case Lane::sigmoid: return unary<logistic>(n, x, y);
    case Lane::relu: return unary<lane::relu>(n, x, y);
    case Lane::gelu: return unary<lane::gelu>(n, x, y);
    case Lane::gelu_tanh: return unary<lane::gelu_tanh>(n, x, y);
    case Lane::silu: return unary<lane::silu>(n, x, y);
    case Lane::gelu_gradient: return binary<lane::gelu_gradient>(n, x, y);
    case Lane::gelu_tanh_gradient: return binary<lane::gelu_tanh_gradient>(n, x, y);
    case Lane::silu_gradient: return binary<lane::silu_gradient>(n, x, y);
  }
}

}  // namespace weft::device::cpu::WEFT_LANES
