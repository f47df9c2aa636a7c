#include "weft/device/cpu/narrow.h"

#include <algorithm>

#include "weft/device/cpu/instruction_set.h"

namespace weft::device::cpu {
namespace {

constexpr std::int64_t kFewest = 4;  // lanes; used for the end of a line

// The last few elements go through a buffer, so that nothing past the end is accessed.
template <class Short>
void widen_rest(const Short* from, float* to, std::int64_t n) {
  Short shorts[kFewest] = {};
  float floats[kFewest];
  std::copy_n(from, n, shorts);
  NarrowLanes<kFewest>::widen(shorts, floats);
  std::copy_n(floats, n, to);
}

template <class Short>
void narrow_rest(const float* from, Short* to, std::int64_t n) {
  float floats[kFewest] = {};
  Short shorts[kFewest];
  std::copy_n(from, n, floats);
  NarrowLanes<kFewest>::narrow(floats, shorts);
  std::copy_n(shorts, n, to);
}

template <class Short>
void round_rest(const float* from, float* to, std::int64_t n) {
  float floats[kFewest] = {};
  std::copy_n(from, n, floats);
  NarrowLanes<kFewest>::round(floats, floats, Short{});
  std::copy_n(floats, n, to);
}

template <int kLanes, class Short>
[[gnu::always_inline]] inline std::int64_t widen_lines(const Short* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) NarrowLanes<kLanes>::widen(from + i, to + i);
  return i;
}

template <int kLanes, class Short>
[[gnu::always_inline]] inline std::int64_t narrow_lines(const float* from, Short* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) NarrowLanes<kLanes>::narrow(from + i, to + i);
  return i;
}

template <int kLanes, class Short>
[[gnu::always_inline]] inline std::int64_t round_lines(const float* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) NarrowLanes<kLanes>::round(from + i, to + i, Short{});
  return i;
}

#if defined(__x86_64__)
template <class Short>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512vl")]] std::int64_t widen_512(const Short* from,
                                                                                   float* to,
                                                                                   std::int64_t n) {
  return widen_lines<16>(from, to, n);
}
template <class Short>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512vl")]] std::int64_t narrow_512(const float* from,
                                                                                    Short* to,
                                                                                    std::int64_t n) {
  return narrow_lines<16>(from, to, n);
}
template <class Short>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512vl")]] std::int64_t round_512(const float* from,
                                                                                   float* to,
                                                                                   std::int64_t n) {
  return round_lines<16, Short>(from, to, n);
}
template <class Short>
[[gnu::noinline, gnu::target("avx2")]] std::int64_t widen_256(const Short* from, float* to, std::int64_t n) {
  return widen_lines<8>(from, to, n);
}
template <class Short>
[[gnu::noinline, gnu::target("avx2")]] std::int64_t narrow_256(const float* from, Short* to, std::int64_t n) {
  return narrow_lines<8>(from, to, n);
}
template <class Short>
[[gnu::noinline, gnu::target("avx2")]] std::int64_t round_256(const float* from, float* to, std::int64_t n) {
  return round_lines<8, Short>(from, to, n);
}

#endif

template <class Short>
void widen_all(const Short* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) i = widen_512(from, to, n);
  if (instruction_set() == InstructionSet::avx2) i = widen_256(from, to, n);
#endif
  i += widen_lines<kFewest>(from + i, to + i, n - i);
  if (i < n) widen_rest(from + i, to + i, n - i);
}

template <class Short>
void narrow_all(const float* from, Short* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) i = narrow_512(from, to, n);
  if (instruction_set() == InstructionSet::avx2) i = narrow_256(from, to, n);
#endif
  i += narrow_lines<kFewest>(from + i, to + i, n - i);
  if (i < n) narrow_rest(from + i, to + i, n - i);
}

template <class Short>
void round_all(const float* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) i = round_512<Short>(from, to, n);
  if (instruction_set() == InstructionSet::avx2) i = round_256<Short>(from, to, n);
#endif
  i += round_lines<kFewest, Short>(from + i, to + i, n - i);
  if (i < n) round_rest<Short>(from + i, to + i, n - i);
}

}  // namespace

void widen(plan::DType dtype, const std::byte* from, float* to, std::int64_t n) {
  switch (dtype) {
    case plan::DType::bf16: return widen_all(reinterpret_cast<const Bf16*>(from), to, n);
    case plan::DType::f8e4m3: return widen_all(reinterpret_cast<const E4m3*>(from), to, n);
    case plan::DType::f8e5m2: return widen_all(reinterpret_cast<const E5m2*>(from), to, n);
    default: return widen_all(reinterpret_cast<const F16*>(from), to, n);
  }
}

void narrow(plan::DType dtype, const float* from, std::byte* to, std::int64_t n) {
  switch (dtype) {
    case plan::DType::bf16: return narrow_all(from, reinterpret_cast<Bf16*>(to), n);
    case plan::DType::f8e4m3: return narrow_all(from, reinterpret_cast<E4m3*>(to), n);
    case plan::DType::f8e5m2: return narrow_all(from, reinterpret_cast<E5m2*>(to), n);
    default: return narrow_all(from, reinterpret_cast<F16*>(to), n);
  }
}

void round(plan::DType dtype, const float* from, float* to, std::int64_t n) {
  switch (dtype) {
    case plan::DType::bf16: return round_all<Bf16>(from, to, n);
    case plan::DType::f8e4m3: return round_all<E4m3>(from, to, n);
    case plan::DType::f8e5m2: return round_all<E5m2>(from, to, n);
    default: return round_all<F16>(from, to, n);
  }
}

}  // namespace weft::device::cpu
