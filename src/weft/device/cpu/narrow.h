// weft/device/cpu/narrow.h -- bf16, f16 and 8-bit floats in memory, f32 in registers.
//
//   bf16   sign, 8 exponent bits, 7 fraction bits: the upper half of an f32
//   f16    sign, 5 exponent bits, 10 fraction bits
//   e4m3   sign, 4 exponent bits, 3 fraction bits; all bits set is NaN, and there is no infinity
//   e5m2   sign, 5 exponent bits, 2 fraction bits: the upper half of an f16
//
// Kernels widen what they load, accumulate in f32, and round what they store to nearest even. The
// four-lane conversions use only integer vectors, so that a product can convert while it packs.
// Whole lines use the widest vectors that the processor has.
#pragma once
#include <cstddef>
#include <cstdint>

#include "weft/plan/graph/dtype.h"

namespace weft::device::cpu {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
struct E4m3 {
  std::uint8_t bits;
};
struct E5m2 {
  std::uint8_t bits;
};

constexpr bool is_narrow(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16 || plan::is_f8(dtype);
}

// Vectors of kLanes floats and of their integers. Spelled out, since g++ drops attributes that
// depend on a template parameter.
template <int kLanes>
struct NarrowVectors;
template <>
struct NarrowVectors<4> {
  typedef float Floats [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint32_t Words [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint16_t Shorts [[gnu::vector_size(8), gnu::may_alias, gnu::aligned(2)]];
  typedef std::uint8_t Bytes [[gnu::vector_size(4), gnu::may_alias, gnu::aligned(1)]];
};
template <>
struct NarrowVectors<8> {
  typedef float Floats [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint32_t Words [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint16_t Shorts [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(2)]];
  typedef std::uint8_t Bytes [[gnu::vector_size(8), gnu::may_alias, gnu::aligned(1)]];
};
template <>
struct NarrowVectors<16> {
  typedef float Floats [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint32_t Words [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]];
  typedef std::uint16_t Shorts [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(2)]];
  typedef std::uint8_t Bytes [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(1)]];
};

template <int kLanes>
struct NarrowLanes {
  using Floats = typename NarrowVectors<kLanes>::Floats;
  using Words = typename NarrowVectors<kLanes>::Words;
  using Shorts = typename NarrowVectors<kLanes>::Shorts;
  using Bytes = typename NarrowVectors<kLanes>::Bytes;

  [[gnu::always_inline]] static inline void widen(const Bf16* from, float* to) {
    *reinterpret_cast<Words*>(to) = __builtin_convertvector(*reinterpret_cast<const Shorts*>(from), Words)
                                    << 16;
  }
  // Moves fraction and exponent to their f32 position and corrects the bias, which differs by 112.
  // Infinities and NaN, which have the largest exponent, get f32's largest.
  [[gnu::always_inline]] static inline void widen(const F16* from, float* to) {
    const Words words = __builtin_convertvector(*reinterpret_cast<const Shorts*>(from), Words);
    const Words size = (words & 0x7fffu) << 13, sign = (words & 0x8000u) << 16;
    const Floats scaled = reinterpret_cast<Floats>(size) * 0x1p112f;
    const Words infinite = reinterpret_cast<Words>(size >= (0x7c00u << 13)) & 0x7f800000u;
    *reinterpret_cast<Words*>(to) = reinterpret_cast<Words>(scaled) | infinite | sign;
  }
  [[gnu::always_inline]] static inline void widen(const E4m3* from, float* to) {
    const Words words = __builtin_convertvector(*reinterpret_cast<const Bytes*>(from), Words);
    const Words size = words & 0x7fu, sign = (words & 0x80u) << 24;
    const Floats scaled = reinterpret_cast<Floats>(size << 20) * 0x1p120f;
    const Words none = reinterpret_cast<Words>(size == 0x7fu) & 0x7fc00000u;
    *reinterpret_cast<Words*>(to) = reinterpret_cast<Words>(scaled) | none | sign;
  }
  [[gnu::always_inline]] static inline void widen(const E5m2* from, float* to) {
    const Words words = __builtin_convertvector(*reinterpret_cast<const Bytes*>(from), Words);
    const Words size = (words & 0x7fu) << 21, sign = (words & 0x80u) << 24;
    const Floats scaled = reinterpret_cast<Floats>(size) * 0x1p112f;
    const Words infinite = reinterpret_cast<Words>(size >= (0x7cu << 21)) & 0x7f800000u;
    *reinterpret_cast<Words*>(to) = reinterpret_cast<Words>(scaled) | infinite | sign;
  }
  [[gnu::always_inline]] static inline void narrow(const float* from, Bf16* to) {
    const Words words = *reinterpret_cast<const Words*>(from);
    const Words rounded = (words + 0x7fffu + (words >> 16 & 1u)) >> 16;
    const Words none = words >> 16 | 0x40u;  // quiet NaN: truncating the fraction could yield infinity
    const Words is_none = reinterpret_cast<Words>((words & 0x7fffffffu) > 0x7f800000u);
    *reinterpret_cast<Shorts*>(to) = __builtin_convertvector((none & is_none) | (rounded & ~is_none), Shorts);
  }
  // Rounds to the narrow type and widens again.
  [[gnu::always_inline]] static inline void round(const float* from, float* to, Bf16 /*kind*/) {
    const Words words = *reinterpret_cast<const Words*>(from);
    const Words rounded = words + 0x7fffu + (words >> 16 & 1u), none = words | 0x400000u;
    const Words is_none = reinterpret_cast<Words>((words & 0x7fffffffu) > 0x7f800000u);
    *reinterpret_cast<Words*>(to) = ((none & is_none) | (rounded & ~is_none)) & 0xffff0000u;
  }
  template <class Short>
  [[gnu::always_inline]] static inline void round(const float* from, float* to, Short /*kind*/) {
    Short shorts[kLanes];
    narrow(from, shorts);
    widen(shorts, to);
  }
  // Subnormal f16 results are rounded by adding a number whose last bit is the smallest f16.
  [[gnu::always_inline]] static inline void narrow(const float* from, F16* to) {
    const Words words = *reinterpret_cast<const Words*>(from);
    const Words size = words & 0x7fffffffu, sign = words >> 16 & 0x8000u;
    const Words normal = (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    const Floats shifted = reinterpret_cast<Floats>(size) + 0.5f;
    const Words small = reinterpret_cast<Words>(shifted) - 0x3f000000u;
    const Words is_small = reinterpret_cast<Words>(size < (113u << 23));
    const Words is_large = reinterpret_cast<Words>(size >= 0x477ff000u);  // 65520 and above
    const Words is_none = reinterpret_cast<Words>(size > 0x7f800000u);
    Words bits = (small & is_small) | (normal & ~is_small);
    bits = (is_large & 0x7c00u) | (bits & ~is_large);
    bits |= is_none & 0x0200u;
    *reinterpret_cast<Shorts*>(to) = __builtin_convertvector(bits | sign, Shorts);
  }
  [[gnu::always_inline]] static inline void narrow(const float* from, E4m3* to) {
    const Words words = *reinterpret_cast<const Words*>(from);
    Words bits;
    find_eight_bits<20, 120>(words, 0x1p14f, bits);
    const Words is_large = reinterpret_cast<Words>((words & 0x7fffffffu) > 0x43e80000u);  // above 464, or NaN
    *reinterpret_cast<Bytes*>(to) =
        __builtin_convertvector((is_large & 0x7fu) | (bits & ~is_large) | (words >> 24 & 0x80u), Bytes);
  }
  [[gnu::always_inline]] static inline void narrow(const float* from, E5m2* to) {
    const Words words = *reinterpret_cast<const Words*>(from);
    const Words size = words & 0x7fffffffu;
    Words bits;
    find_eight_bits<21, 112>(words, 0x1p7f, bits);
    const Words is_large = reinterpret_cast<Words>(size >= 0x47700000u);  // 61440 and above
    const Words is_none = reinterpret_cast<Words>(size > 0x7f800000u) & 0x02u;
    *reinterpret_cast<Bytes*>(to) = __builtin_convertvector(
        (is_large & 0x7cu) | (bits & ~is_large) | is_none | (words >> 24 & 0x80u), Bytes);
  }

 private:
  // The magnitude bits of a number in range, with kDropped fraction bits dropped and the exponent
  // reduced by kExponent; the last bit of `unit` is the smallest such number. By reference, since
  // the ABI of vector arguments depends on the target.
  template <unsigned kDropped, unsigned kExponent>
  [[gnu::always_inline]] static inline void find_eight_bits(const Words& words, float unit, Words& bits) {
    const Words size = words & 0x7fffffffu;
    const Words normal =
        (size + ((1u << (kDropped - 1)) - 1) + (size >> kDropped & 1u) - (kExponent << 23)) >> kDropped;
    const Floats units = unit - Floats{}, shifted = reinterpret_cast<Floats>(size) + units;
    const Words small = reinterpret_cast<Words>(shifted) - reinterpret_cast<Words>(units);
    const Words is_small = reinterpret_cast<Words>(size < ((kExponent + 1) << 23));
    bits = (small & is_small) | (normal & ~is_small);
  }
};

inline float widened(Bf16 x) {
  const std::uint32_t word = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}
inline float widened(F16 x) {
  F16 four[4] = {x, x, x, x};
  float values[4];
  NarrowLanes<4>::widen(four, values);
  return values[0];
}
inline float widened(float x) { return x; }
inline double widened(double x) { return x; }

// Convert n contiguous elements of a narrow dtype.
void widen(plan::DType dtype, const std::byte* from, float* to, std::int64_t n);
void narrow(plan::DType dtype, const float* from, std::byte* to, std::int64_t n);
// Rounds to the narrow dtype and widens again; `to` may alias `from`.
void round(plan::DType dtype, const float* from, float* to, std::int64_t n);

}  // namespace weft::device::cpu
