// weft/device/cpu/lanes_math.h -- exp, log, tanh and similar functions on vectors, without
// branches.
//
//              largest error                    method
//   exp        2 ulp                            e^x = 2^n e^r with |r| <= ln2/2, a polynomial in r
//   log        2 ulp                            log x = e ln2 + log m with m about 1, a polynomial in m-1
//   tanh       3 ulp                            E / (E + 2) with E = e^(2|x|) - 1
//   sigmoid    3 ulp                            1 / (1 + e^-x)
//   erf        3 ulp                            an odd polynomial below 0.92, 1 - e^q(x) above
//   pow        1 ulp                            2^(b log2 a) in doubles, for normal a > 0
//   sin, cos   2e-7 absolute, |x| <= 1e4        x minus its nearest multiple of pi/2
//
// test/unit/lanes_math_test.cpp measures these bounds. e^x flushes to 0 below the smallest normal
// float, for x < -87.34. Every polynomial is our own minimax fit (Remez exchange, relative error of
// the whole function), with coefficients rounded to float one after the other, lowest first.
//
// Argument reduction uses a constant split into two or three parts, after W. Cody and W. Waite,
// "Software manual for the elementary functions", 1980.
#pragma once
#include <limits>

#include "weft/device/cpu/lanes_vector.h"

namespace weft::device::cpu::WEFT_LANES {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// c0 + c1 x + c2 x^2 + .., in pairs: half the dependency chain of Horner's scheme.
inline Vector polynomial_in_pairs(Vector, Vector, float c0) { return splat(c0); }
inline Vector polynomial_in_pairs(Vector x, Vector, float c0, float c1) { return x * c1 + c0; }
template <class... Rest>
Vector polynomial_in_pairs(Vector x, Vector square, float c0, float c1, Rest... rest) {
  return polynomial_in_pairs(x, square, rest...) * square + (x * c1 + c0);
}
template <class... Coefficients>
Vector polynomial(Vector x, Coefficients... c) {
  return polynomial_in_pairs(x, x * x, c...);
}

// The integer nearest to x * scale, for |x * scale| < 2^22: as a float, and in the low bits.
struct Rounded {
  Vector whole;
  Bits bits;
};
inline Rounded rounded(Vector x, float scale) {
  constexpr float kMagic = 0x1.8p23f;  // floats are one apart here, with room for both signs of n
  const Vector shifted = x * scale + kMagic;
  return {shifted - kMagic, bits_of(shifted)};
}

// ln 2 in two parts; the high one has 16 bits, so its product with a float's exponent is exact.
inline constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kLog2E = 0x1.715476p0f;

// e^x = 2^n (1 + rest); `power` is what to add to a float's exponent bits.
struct SplitExponential {
  Vector rest;
  Bits power;
};
inline SplitExponential split_exponential(Vector x) {
  const Rounded n = rounded(x, kLog2E);
  const Vector r = (x - n.whole * kLn2High) - n.whole * kLn2Low;
  const Vector rest =
      polynomial(r, 0x1.fffffep-2f, 0x1.5554a8p-3f, 0x1.555796p-5f, 0x1.122e24p-7f, 0x1.6ac13ep-10f) *
          (r * r) +
      r;
  return {rest, n.bits << 23};
}
inline Vector power_of_two(Bits power) { return float_of(power + 0x3f800000u); }

inline Vector exponential(Vector x) {
  // The range of arguments with normal results: 88.72283 and -87.33654.
  constexpr float kMost = 0x1.62e42ep6f, kLeast = -0x1.5d589ep6f;
  const SplitExponential e = split_exponential(x);
  // Adding to the exponent bits reaches 2^128 * 0.99..; multiplying by a power of two would
  // overflow.
  const Vector y = float_of(bits_of(e.rest + 1.0f) + e.power);
  const Vector not_small = choose(x < kLeast, Vector{}, y);
  return choose(x <= kMost, not_small, x + kInfinity);  // NaN propagates
}

inline Vector logarithm(Vector x) {
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
  constexpr float kLeastNormal = 0x1p-126f;
  const Mask tiny = x < kLeastNormal;
  const Bits bits = bits_of(choose(tiny, x * 0x1p23f, x));
  const Mask exponent = reinterpret_cast<Mask>(bits - kSqrtHalf) >> 23;
  const Vector e = __builtin_convertvector(exponent, Vector) + choose(tiny, splat(-23), Vector{});
  const Vector f = float_of(bits - (reinterpret_cast<Bits>(exponent) << 23)) - 1.0f;  // m - 1
  const Vector square = f * f;
  const Vector cubic = polynomial(f, 0x1.555554p-2f, -0x1.000228p-2f, 0x1.99a036p-3f, -0x1.547226p-3f,
                                  0x1.22d5d6p-3f, -0x1.0d8092p-3f, 0x1.059796p-3f, -0x1.39c4d0p-4f);
  const Vector small = (cubic * f * square + e * kLn2Low) - 0.5f * square;
  const Vector y = (small + f) + e * kLn2High;
  const Vector no_number = choose(x < 0.0f, splat(kNaN), x);  // inf and NaN propagate
  const Vector outside = choose(x == 0.0f, splat(-kInfinity), no_number);
  return choose((x > 0.0f) & (x < kInfinity), y, outside);
}

inline Vector hyperbolic_tangent(Vector x) {
  constexpr float kOneFromHere = 9.02f;  // from here on 1 - tanh is below half an ulp of 1
  const Vector a = magnitude(x);
  const SplitExponential e = split_exponential(2.0f * choose(a > kOneFromHere, splat(kOneFromHere), a));
  const Vector power = power_of_two(e.power);
  const Vector less_one = e.rest * power + (power - 1.0f);  // e^(2a) - 1 without cancellation near zero
  return with_sign_of(less_one / (less_one + 2.0f), x);
}

inline Vector logistic(Vector x) { return 1.0f / (1.0f + exponential(-x)); }

inline Vector error_function(Vector x) {
  constexpr float kOneFromHere = 3.93f;  // from here on 1 - erf is below half an ulp of 1
  constexpr float kPartition = 0.92f;
  const Vector square = x * x;
  const Vector near = polynomial(square, 0x1.06eba6p-3f, -0x1.8126e2p-2f, 0x1.ce1984p-4f, -0x1.b67bcep-6f,
                                 0x1.46d838p-8f, -0x1.386c08p-11f) *
                          x +
                      x;
  const Vector a = magnitude(x);
  const Vector log_of_rest =
      polynomial(choose(a > kOneFromHere, splat(kOneFromHere), a), -0x1.9a620cp-13f, -0x1.20af58p0f,
                 -0x1.463cc8p-1f, -0x1.a9b3eep-4f, 0x1.6c29fcp-6f, -0x1.8ee0bcp-9f, 0x1.9ae8f2p-13f);
  const SplitExponential e = split_exponential(log_of_rest);
  const Vector power = power_of_two(e.power);
  const Vector far = 1.0f - (e.rest * power + power);
  return choose(a < kPartition, near, with_sign_of(far, x));
}

// sin(x + quarters * pi/2), for |x| up to kFarthestTurn.
inline constexpr float kFarthestTurn = 1e4f;
inline Vector sine_shifted(Vector x, std::uint32_t quarters) {
  // pi/2 in three parts: the first two have 11 bits, so their products with n < 2^13 are exact.
  constexpr float kHigh = 0x1.92p0f, kMiddle = 0x1.fb4p-12f, kLow = 0x1.4442d2p-24f;
  const Rounded n = rounded(x, 0x1.45f306p-1f);
  const Vector r = ((x - n.whole * kHigh) - n.whole * kMiddle) - n.whole * kLow;
  const Vector square = r * r;
  const Vector sine =
      polynomial(square, -0x1.555546p-3f, 0x1.110776p-7f, -0x1.995282p-13f) * (square * r) + r;
  const Vector cosine =
      polynomial(square, 0x1.55554ap-5f, -0x1.6c0c1ap-10f, 0x1.99e0e4p-16f) * (square * square) +
      (1.0f - 0.5f * square);
  const Bits turn = n.bits + quarters;
  const Vector y = choose(reinterpret_cast<Mask>((turn & 1) == 0), sine, cosine);
  return float_of(bits_of(y) ^ ((turn & 2) << 30));
}
inline Vector sine_near(Vector x) { return sine_shifted(x, 0); }
inline Vector cosine_near(Vector x) { return sine_shifted(x, 1); }

// Half a vector, computed in doubles: a power loses as many bits as the exponent has above one,
// which float cannot afford.
using Half [[gnu::vector_size(kWidth * sizeof(float) / 2)]] = float;
using HalfMask [[gnu::vector_size(kWidth * sizeof(float) / 2)]] = std::int32_t;
using Doubles [[gnu::vector_size(kWidth * sizeof(double) / 2)]] = double;
using DoubleBits [[gnu::vector_size(kWidth * sizeof(double) / 2)]] = std::int64_t;

inline constexpr float kLeastBase = 0x1p-126f;  // the smallest normal number

// 2^(b (e + log2 m)) for m in [sqrt(1/2), sqrt(2)). log2 m = 2 / ln2 atanh(t) with t = (m - 1) / (m
// + 1), |t| <= 0.172: seven terms of the series have an error of 2e-13. 2^r for |r| <= 1/2: seven
// terms of exp's, 6e-9.
inline Half power_of_half(Half m, HalfMask e, Half b) {
  const Doubles mantissa = __builtin_convertvector(m, Doubles);
  const Doubles t = (mantissa - 1.0) / (mantissa + 1.0), square = t * t;
  const Doubles series =
      ((((((square * (1.0 / 13) + 1.0 / 11) * square + 1.0 / 9) * square + 1.0 / 7) * square + 1.0 / 5) *
            square +
        1.0 / 3) *
           square +
       1.0) *
      t;
  constexpr double kTwoOverLn2 = 0x1.71547652b82fep1, kMost = 200, kMagic = 0x1.8p52,
                   kLn2 = 0x1.62e42fefa39efp-1;
  Doubles z =
      (series * kTwoOverLn2 + __builtin_convertvector(e, Doubles)) * __builtin_convertvector(b, Doubles);
  z = z > kMost ? kMost - Doubles{} : z;
  z = z < -kMost ? -kMost - Doubles{} : z;
  const Doubles shifted = z + kMagic;
  const Doubles r = (z - (shifted - kMagic)) * kLn2;
  const Doubles fraction =
      ((((((r * (1.0 / 5040) + 1.0 / 720) * r + 1.0 / 120) * r + 1.0 / 24) * r + 1.0 / 6) * r + 0.5) * r +
       1.0) *
          r +
      1.0;
  const DoubleBits bits =
      reinterpret_cast<DoubleBits>(fraction) + (reinterpret_cast<DoubleBits>(shifted) << 52);
  return __builtin_convertvector(reinterpret_cast<Doubles>(bits), Half);
}

// a^b for normal a > 0 and finite b.
inline Vector power_near(Vector a, Vector b) {
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
  const Bits bits = bits_of(a);
  const Mask e = reinterpret_cast<Mask>(bits - kSqrtHalf) >> 23;
  const Vector m = float_of(bits - (reinterpret_cast<Bits>(e) << 23));
  Half of_m[2], of_b[2], y[2];
  HalfMask of_e[2];
  __builtin_memcpy(of_m, &m, sizeof m);
  __builtin_memcpy(of_b, &b, sizeof b);
  __builtin_memcpy(of_e, &e, sizeof e);
  for (int half = 0; half < 2; ++half) y[half] = power_of_half(of_m[half], of_e[half], of_b[half]);
  Vector both;
  __builtin_memcpy(&both, y, sizeof both);
  return both;
}

}  // namespace weft::device::cpu::WEFT_LANES
