// weft/device/cpu/lanes_vector.h -- the vector register of the target instruction set.
//
//   any machine          Vector = 4 floats     namespace lanes_baseline
//   x86 with avx2, fma            8 floats               lanes_avx2
//   x86 with avx512              16 floats               lanes_avx512
//
// Uses the vector extension of g++ and clang: + - * / < and ?: work lane by lane, without relying
// on auto-vectorization. Code in this and the other lanes_ headers is in the namespace WEFT_LANES,
// since one program may contain it several times, once per source file (see lanes_avx2.cpp).
// lanes.cpp picks the widest that the processor supports.
//
// The functions are small and meant to be inlined into loops: every kernel is [[gnu::flatten]].
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

// Sources that select an instruction set by pragma define the width themselves: g++ 12 applies the
// pragma only after preprocessing, so __AVX2__ and the like are not yet defined.
#if defined(WEFT_LANES_WIDTH)
#elif defined(__AVX512F__) && defined(__AVX512DQ__)
#define WEFT_LANES_WIDTH 16
#elif defined(__AVX2__) && defined(__FMA__)
#define WEFT_LANES_WIDTH 8
#else
#define WEFT_LANES_WIDTH 4
#endif

#if WEFT_LANES_WIDTH == 16
#define WEFT_LANES lanes_avx512
#elif WEFT_LANES_WIDTH == 8
#define WEFT_LANES lanes_avx2
#else
#define WEFT_LANES lanes_baseline
#endif

namespace weft::device::cpu::WEFT_LANES {

inline constexpr int kWidth = WEFT_LANES_WIDTH;

using Vector [[gnu::vector_size(kWidth * sizeof(float))]] = float;
using Bits [[gnu::vector_size(kWidth * sizeof(float))]] = std::uint32_t;
using Mask [[gnu::vector_size(kWidth * sizeof(float))]] = std::int32_t;  // all ones or all zeros per lane

// Which lanes of a vector are inside the array: all of them, except at its end.
struct AllLanes {};
struct FirstLanes {
  int count;  // below kWidth
};

inline Vector splat(float value) { return value - Vector{}; }  // subtracting 0 keeps a -0

inline Vector load(const float* from, AllLanes, float /*fill*/) {
  Vector x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
#if WEFT_LANES_WIDTH == 8
inline Mask first(FirstLanes lanes) { return Mask{0, 1, 2, 3, 4, 5, 6, 7} < lanes.count; }
#endif
inline Vector load(const float* from, FirstLanes lanes, float fill) {  // `fill` in the other lanes
#if WEFT_LANES_WIDTH == 16
  return _mm512_mask_loadu_ps(splat(fill), static_cast<__mmask16>((1u << lanes.count) - 1), from);
#elif WEFT_LANES_WIDTH == 8
  const Mask which = first(lanes);
  const Vector x = _mm256_maskload_ps(from, reinterpret_cast<__m256i>(which));
  return which ? x : splat(fill);
#else
  Vector x = splat(fill);
  for (int k = 0; k < lanes.count; ++k) x[k] = from[k];
  return x;
#endif
}

inline void store(float* to, Vector x, AllLanes) { __builtin_memcpy(to, &x, sizeof x); }
inline void store(float* to, Vector x, FirstLanes lanes) {
#if WEFT_LANES_WIDTH == 16
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << lanes.count) - 1), x);
#elif WEFT_LANES_WIDTH == 8
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(first(lanes)), x);
#else
  for (int k = 0; k < lanes.count; ++k) to[k] = x[k];
#endif
}

// Rotates by kBy lanes: lane k gets what lane k + kBy held.
template <std::size_t kBy, std::size_t... kLane>
Vector moved_down(Vector x, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(x, x, static_cast<int>((kLane + kBy) % kWidth)...);
}
template <std::size_t kBy>
Vector moved_down(Vector x) {
  return moved_down<kBy>(x, std::make_index_sequence<kWidth>());
}

inline Bits bits_of(Vector x) { return reinterpret_cast<Bits>(x); }
inline Vector float_of(Bits x) { return reinterpret_cast<Vector>(x); }

inline Vector choose(Mask which, Vector yes, Vector no) { return which ? yes : no; }

inline Vector magnitude(Vector x) { return float_of(bits_of(x) & 0x7fffffffu); }
inline Vector with_sign_of(Vector positive, Vector sign) {
  return float_of(bits_of(positive) | (bits_of(sign) & 0x80000000u));
}

inline Vector square_root(Vector x) {
#if defined(__aarch64__)
  return vsqrtq_f32(x);
#elif WEFT_LANES_WIDTH == 16
  return _mm512_sqrt_ps(x);
#elif WEFT_LANES_WIDTH == 8
  return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  return _mm_sqrt_ps(x);
#else
  for (int k = 0; k < kWidth; ++k) x[k] = std::sqrt(x[k]);
  return x;
#endif
}

}  // namespace weft::device::cpu::WEFT_LANES
