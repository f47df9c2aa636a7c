// weft/device/element_access.h -- reads and writes single elements of any dtype as doubles.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weft/plan/graph/dtype.h"

namespace weft::device {

// Rounds to a float with the given exponent and fraction bits, to nearest even. Converts from
// double directly: going through float would round twice. A format with 4 exponent bits has no
// infinity: its largest encoding is NaN, and overflow gives NaN.
template <int kExponentBits, int kFractionBits>
std::uint16_t to_short(double value) {
  static_assert(kExponentBits + kFractionBits == 15 || kExponentBits + kFractionBits == 7);
  constexpr bool kFinite = kExponentBits == 4;
  constexpr std::uint32_t kLargestExponent = ((1u << kExponentBits) - 1) << kFractionBits;
  constexpr std::uint32_t kBeyond = kFinite ? 0x7f : kLargestExponent;
  constexpr int kLeast = 2 - (1 << (kExponentBits - 1));  // smallest normal number; subnormals share it
  const std::uint32_t sign = std::signbit(value) ? 1u << (kExponentBits + kFractionBits) : 0;
  // Fast path for normal results: round the bits; a carry goes into the exponent.
  constexpr int kCut = 52 - kFractionBits;
  const std::uint64_t whole = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  if (const int power = static_cast<int>(whole >> 52) - 1023; power >= kLeast && power < -kLeast) {
    const std::uint64_t rounded = whole + (std::uint64_t{1} << (kCut - 1)) - 1 + (whole >> kCut & 1);
    return static_cast<std::uint16_t>(
        sign | ((rounded >> kCut) - (static_cast<std::uint64_t>(1022 + kLeast) << kFractionBits)));
  }
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | kBeyond | 1u << (kFractionBits - 1));
  const double size = std::abs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | kBeyond);
  const int exponent = size == 0 ? kLeast : std::max(std::ilogb(size), kLeast);
  const double units = std::nearbyint(std::ldexp(size, kFractionBits - exponent));
  if (exponent > -kLeast + (kFinite ? 2 : 1)) return static_cast<std::uint16_t>(sign | kBeyond);
  // The implicit leading one, and a fraction that rounds up to two, carry into the exponent.
  const std::uint32_t bits =
      (static_cast<std::uint32_t>(exponent - kLeast) << kFractionBits) + static_cast<std::uint32_t>(units);
  return static_cast<std::uint16_t>(sign | std::min(bits, kBeyond));
}

// bf16 is the upper half of a float.
inline double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t to_bf16(double value) { return to_short<8, 7>(value); }

// f16: 1 sign bit, 5 exponent bits, 10 fraction bits.
inline double from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                : exponent == 0 ? std::ldexp(fraction, -24)
                                : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
inline std::uint16_t to_f16(double value) { return to_short<5, 10>(value); }

inline double from_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 0xf, fraction = bits & 7;
  const double size = (bits & 0x7f) == 0x7f ? NAN
                      : exponent == 0       ? std::ldexp(fraction, -9)
                                            : std::ldexp(fraction + 8, exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}
inline std::uint8_t to_e4m3(double value) { return static_cast<std::uint8_t>(to_short<4, 3>(value)); }

// e5m2 is the upper half of an f16.
inline double from_e5m2(std::uint8_t bits) { return from_f16(static_cast<std::uint16_t>(bits << 8)); }
inline std::uint8_t to_e5m2(double value) { return static_cast<std::uint8_t>(to_short<5, 2>(value)); }

template <class T>
T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline double load_element(plan::DType dtype, const std::byte* memory, std::int64_t at) {
  using enum plan::DType;
  const std::byte* from = memory + at * plan::size_in_bytes(dtype);
  switch (dtype) {
    case f32: return load_as<float>(from);
    case f64: return load_as<double>(from);
    case bf16: return from_bf16(load_as<std::uint16_t>(from));
    case f16: return from_f16(load_as<std::uint16_t>(from));
    case i32: return load_as<std::int32_t>(from);
    case i64: return static_cast<double>(load_as<std::int64_t>(from));
    case boolean: return load_as<std::uint8_t>(from);
    case f8e4m3: return from_e4m3(load_as<std::uint8_t>(from));
    case f8e5m2: return from_e5m2(load_as<std::uint8_t>(from));
  }
  return 0;
}

// Saturates values out of range; NaN becomes 0.
template <class Whole>
Whole to_whole(double value) {
  if (std::isnan(value)) return 0;
  constexpr double kLimit = sizeof(Whole) == 4 ? 0x1p31 : 0x1p63;
  if (value >= kLimit) return static_cast<Whole>(~(Whole{1} << (8 * sizeof(Whole) - 1)));
  if (value < -kLimit) return static_cast<Whole>(Whole{1} << (8 * sizeof(Whole) - 1));
  return static_cast<Whole>(value);
}

inline void store_element(plan::DType dtype, std::byte* memory, std::int64_t at, double value) {
  using enum plan::DType;
  std::byte* to = memory + at * plan::size_in_bytes(dtype);
  const auto put = [&](auto element) { std::memcpy(to, &element, sizeof element); };
  switch (dtype) {
    case f32: return put(static_cast<float>(value));
    case f64: return put(value);
    case bf16: return put(to_bf16(value));
    case f16: return put(to_f16(value));
    case i32: return put(to_whole<std::int32_t>(value));
    case i64: return put(to_whole<std::int64_t>(value));
    case boolean: return put(static_cast<std::uint8_t>(value != 0));
    case f8e4m3: return put(to_e4m3(value));
    case f8e5m2: return put(to_e5m2(value));
  }
}

}  // namespace weft::device
