// weft/device/cpu/reduction_numbers.h -- vector representation of the element types that
// collectives reduce.
//
//   in memory                            in a register
//   f64 f32, integers                    unchanged
//   f16 bf16                             as f32; rounded to nearest even when stored
//
// Uses the vector extension of g++ and clang, as in lanes_vector.h. The code is compiled once per
// instruction set, each time in its own namespace.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

// Sources that select an instruction set by pragma define this themselves, as in lanes_vector.h.
#if defined(WEFT_REDUCTIONS_BYTES)
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__F16C__)
#define WEFT_REDUCTIONS_BYTES 64
#elif defined(__AVX2__) && defined(__F16C__)
#define WEFT_REDUCTIONS_BYTES 32
#else
#define WEFT_REDUCTIONS_BYTES 16
#endif

#if WEFT_REDUCTIONS_BYTES == 64
#define WEFT_REDUCTIONS reductions_avx512
#elif WEFT_REDUCTIONS_BYTES == 32
#define WEFT_REDUCTIONS reductions_avx2
#else
#define WEFT_REDUCTIONS reductions_baseline
#endif

namespace weft::device::cpu::WEFT_REDUCTIONS {

inline constexpr std::size_t kVectorBytes = WEFT_REDUCTIONS_BYTES;

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};

// A number computed in its stored type.
template <class T>
struct Plain {
  using Stored = T;
  using Vector = typename VectorOf<T>::Type;
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

  static Vector load(const Stored* from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(Stored* to, Vector x) { std::memcpy(to, &x, sizeof x); }
};

using Floats = VectorOf<float>::Type;
using Bits = VectorOf<std::uint32_t>::Type;
inline constexpr std::size_t kFloats = kVectorBytes / sizeof(float);
typedef std::uint16_t Halves __attribute__((vector_size(kFloats * sizeof(std::uint16_t))));

inline Bits widen(const std::uint16_t* from) {
  Halves x;
  std::memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, Bits);
}
inline void narrow(std::uint16_t* to, Bits bits) {
  const Halves x = __builtin_convertvector(bits, Halves);
  std::memcpy(to, &x, sizeof x);
}
// The same for the upper half of each word; hand-written where the compiler generates slow code.
inline Bits widen_upper(const std::uint16_t* from) {
#if defined(__aarch64__)
  return __builtin_bit_cast(Bits, vzip1q_u16(vdupq_n_u16(0), vcombine_u16(vld1_u16(from), vdup_n_u16(0))));
#else
  return widen(from) << 16;
#endif
}
inline void narrow_upper(std::uint16_t* to, Bits bits) {
#if defined(__aarch64__)
  vst1_u16(to, vshrn_n_u32(__builtin_bit_cast(uint32x4_t, bits), 16));
#else
  narrow(to, bits >> 16);
#endif
}
// The builtin: std::bit_cast is compiled for the baseline, and clang cannot return a wide vector
// from it.
inline Bits bits_of(Floats x) { return __builtin_bit_cast(Bits, x); }
inline Floats floats_of(Bits bits) { return __builtin_bit_cast(Floats, bits); }

// The upper half of an f32.
struct BFloat16 {
  using Stored = std::uint16_t;
  using Vector = Floats;
  static constexpr std::size_t kLanes = kFloats;

  static Vector load(const Stored* from) { return floats_of(widen_upper(from)); }
  static void store(Stored* to, Vector x) {
    const Bits bits = x == x ? bits_of(x) : Bits{} + 0x7fc00000;  // rounding could turn a NaN into infinity
    narrow_upper(to, bits + 0x7fff + ((bits >> 16) & 1));
  }
};

struct Float16 {
  using Stored = std::uint16_t;
  using Vector = Floats;
  static constexpr std::size_t kLanes = kFloats;

#if defined(__aarch64__)
  static Vector load(const Stored* from) {
    return __builtin_bit_cast(Vector, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))));
  }
  static void store(Stored* to, Vector x) {
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(__builtin_bit_cast(float32x4_t, x))));
  }
#elif WEFT_REDUCTIONS_BYTES == 64
  static Vector load(const Stored* from) {
    return __builtin_bit_cast(Vector,
                              _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  }
  static void store(Stored* to, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(__builtin_bit_cast(__m512, x), _MM_FROUND_TO_NEAREST_INT));
  }
#elif WEFT_REDUCTIONS_BYTES == 32
  static Vector load(const Stored* from) {
    return __builtin_bit_cast(Vector,
                              _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static void store(Stored* to, Vector x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(__builtin_bit_cast(__m256, x), _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static Vector load(const Stored* from) {
    const Bits half = widen(from), sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;
    // The exponent biases differ by 112: multiplying by 2^112 corrects them, also for subnormals.
    const Bits finite = bits_of(floats_of(magnitude << 13) * 0x1p112F);
    const Bits beyond = (magnitude << 13) | 0x7f800000;  // infinities and NaN
    return floats_of(sign | (magnitude >= 0x7c00 ? beyond : finite));
  }
  static void store(Stored* to, Vector x) {
    const Bits bits = bits_of(x), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    const Bits normal = ((magnitude + 0xfff + ((magnitude >> 13) & 1)) >> 13) - (112 << 10);
    // Near 0.5 the last bit of an f32 is worth 2^-24, the unit of subnormal f16 numbers.
    const Bits subnormal = bits_of(floats_of(magnitude) + 0.5F) - __builtin_bit_cast(std::uint32_t, 0.5F);
    Bits half = floats_of(magnitude) < 0x1p-14F ? subnormal : normal;
    half = floats_of(magnitude) >= 65520.0F ? half * 0 + 0x7c00 : half;
    half = x != x ? half * 0 + 0x7e00 : half;
    narrow(to, sign | half);
  }
#endif
};

}  // namespace weft::device::cpu::WEFT_REDUCTIONS
