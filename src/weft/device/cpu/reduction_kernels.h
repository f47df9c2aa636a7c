// weft/device/cpu/reduction_kernels.h -- the functions of reduction.h as a table per instruction
// set.
//
//   reduction.cpp          kernels for the build's target; picks among all tables
//   reduction_avx2.cpp     the same source compiled for avx2 and f16c
//   reduction_avx512.cpp   and for avx512
//
// A kernel reads all its sources in one pass and writes the target once: n sources cost n + 1
// memory streams, not 3 (n - 1). A block of the target is written after that block of all sources
// was read, so the target may be one of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/device/cpu/reduction.h"
#include "weft/device/cpu/reduction_numbers.h"

// Whether the build contains the wider sets: x86 only.
#if defined(__x86_64__)
#define WEFT_REDUCTIONS_WIDER 1
#else
#define WEFT_REDUCTIONS_WIDER 0
#endif

namespace weft::device::cpu {

inline constexpr std::size_t kUnrolledSources = 8;
inline constexpr std::size_t kArithmeticOps = static_cast<std::size_t>(ReduceOp::bit_and);

struct ReductionKernels {
  using Fold = void (*)(void* target, const void* const* sources, std::size_t count, std::size_t elements);
  using Divide = void (*)(void* target, std::size_t elements, std::int64_t divisor);

  // [n] is for n sources if loop_for(n) is n; [0] is for any number.
  using Folds = std::array<Fold, kUnrolledSources + 1>;
  std::array<std::array<Folds, kArithmeticOps>, kElementTypes> folds;
  std::array<Folds, kReduceOps - kArithmeticOps> bitwise;  // on bytes
  std::array<Divide, kElementTypes> divide;
};

extern const ReductionKernels kAvx2Reductions, kAvx512Reductions;  // if WEFT_REDUCTIONS_WIDER

namespace WEFT_REDUCTIONS {

// Numbers of sources with an unrolled loop: 2, 3, 4 and 8. 0 is the loop for any number.
constexpr std::size_t loop_for(std::size_t sources) {
  return (sources >= 2 && sources <= 4) || sources == kUnrolledSources ? sources : 0;
}

template <ReduceOp op, class Vector>
inline Vector combine(Vector a, Vector b) {
  if constexpr (op == ReduceOp::bit_and) return a & b;
  if constexpr (op == ReduceOp::bit_or) return a | b;
  if constexpr (op == ReduceOp::bit_xor) return a ^ b;
  if constexpr (op == ReduceOp::product) return a * b;
#if defined(__aarch64__)
  if constexpr (op == ReduceOp::min && std::is_same_v<Vector, Floats>)
    return __builtin_bit_cast(
        Vector, vminq_f32(__builtin_bit_cast(float32x4_t, a), __builtin_bit_cast(float32x4_t, b)));
  if constexpr (op == ReduceOp::max && std::is_same_v<Vector, Floats>)
    return __builtin_bit_cast(
        Vector, vmaxq_f32(__builtin_bit_cast(float32x4_t, a), __builtin_bit_cast(float32x4_t, b)));
#endif
  // Comparisons with NaN are false, and NaN != NaN: either operand's NaN becomes the result.
  if constexpr (op == ReduceOp::min) return ((a < b) | (a != a)) ? a : b;
  if constexpr (op == ReduceOp::max) return ((a > b) | (a != a)) ? a : b;
  return a + b;
}

inline constexpr std::size_t kGroup = 4;  // vectors in flight: enough to hide the latency of additions

// Folds from element `at` on, one vector at a time.
template <class Number, ReduceOp op>
[[gnu::flatten, gnu::noinline]] void fold_rest(void* target, const void* const* sources, std::size_t count,
                                               std::size_t at, std::size_t elements) {
  using Stored = typename Number::Stored;
  using Vector = typename Number::Vector;
  const auto source = [&](std::size_t k) { return static_cast<const Stored*>(sources[k]) + at; };
  Stored* const result = static_cast<Stored*>(target);
  for (; at + Number::kLanes <= elements; at += Number::kLanes) {
    Vector a = Number::load(source(0));
    for (std::size_t k = 1; k < count; ++k) a = combine<op>(a, Number::load(source(k)));
    Number::store(result + at, a);
  }
  const std::size_t lanes = elements - at;
  if (lanes == 0) return;
  // The remainder goes through a padded vector, so that it is computed alike.
  const auto load = [lanes](const Stored* from) {
    Stored padded[Number::kLanes] = {};
    std::memcpy(padded, from, lanes * sizeof(Stored));
    return Number::load(padded);
  };
  Vector a = load(source(0));
  for (std::size_t k = 1; k < count; ++k) a = combine<op>(a, load(source(k)));
  Stored padded[Number::kLanes];
  Number::store(padded, a);
  std::memcpy(result + at, padded, lanes * sizeof(Stored));
}

// If `kSources` is 0, `count` gives the number of sources.
template <class Number, ReduceOp op, std::size_t kSources>
[[gnu::flatten]] void fold(void* target, const void* const* sources, std::size_t count,
                           std::size_t elements) {
  using Stored = typename Number::Stored;
  using Vector = typename Number::Vector;
  constexpr std::size_t kStretch = kGroup * Number::kLanes;
  const std::size_t last = kSources == 0 ? count : kSources;
  const auto source = [&](std::size_t k) { return static_cast<const Stored*>(sources[k]); };
  Stored* const result = static_cast<Stored*>(target);
  std::size_t at = 0;
  for (; at + kStretch <= elements; at += kStretch) {
    Vector a = Number::load(source(0) + at), b = Number::load(source(0) + at + Number::kLanes);
    Vector c = Number::load(source(0) + at + 2 * Number::kLanes);
    Vector d = Number::load(source(0) + at + 3 * Number::kLanes);
#pragma GCC unroll 8
    for (std::size_t k = 1; k < last; ++k) {
      const Stored* const from = source(k) + at;
      a = combine<op>(a, Number::load(from));
      b = combine<op>(b, Number::load(from + Number::kLanes));
      c = combine<op>(c, Number::load(from + 2 * Number::kLanes));
      d = combine<op>(d, Number::load(from + 3 * Number::kLanes));
    }
    Number::store(result + at, a);
    Number::store(result + at + Number::kLanes, b);
    Number::store(result + at + 2 * Number::kLanes, c);
    Number::store(result + at + 3 * Number::kLanes, d);
  }
  if (at < elements) fold_rest<Number, op>(target, sources, last, at, elements);
}

template <class Number>
[[gnu::flatten]] void divide(void* target, std::size_t elements, std::int64_t divisor) {
  using Stored = typename Number::Stored;
  using Vector = typename Number::Vector;
  using Lane = std::remove_reference_t<decltype(std::declval<Vector&>()[0])>;
  const Vector by = Vector{} + static_cast<Lane>(divisor);
  Stored* const numbers = static_cast<Stored*>(target);
  std::size_t at = 0;
  for (; at + Number::kLanes <= elements; at += Number::kLanes)
    Number::store(numbers + at, Number::load(numbers + at) / by);
  if (const std::size_t lanes = elements - at; lanes != 0) {
    Stored padded[Number::kLanes] = {};
    std::memcpy(padded, numbers + at, lanes * sizeof(Stored));
    Number::store(padded, Number::load(padded) / by);
    std::memcpy(numbers + at, padded, lanes * sizeof(Stored));
  }
}

template <class Integer>
void divide_integers(void* target, std::size_t elements, std::int64_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<Integer>, std::int64_t, std::uint64_t>;
  Integer* const numbers = static_cast<Integer*>(target);
  for (std::size_t at = 0; at < elements; ++at)
    numbers[at] = static_cast<Integer>(static_cast<Wide>(numbers[at]) / static_cast<Wide>(divisor));
}

template <class Number, ReduceOp op>
constexpr ReductionKernels::Folds folds_of() {
  return []<std::size_t... k>(std::index_sequence<k...>) {
    return ReductionKernels::Folds{fold<Number, op, loop_for(k)>...};
  }
  (std::make_index_sequence<kUnrolledSources + 1>());
}

// Sums and products use `Wrapping`, whose overflow is defined; min and max use `Number`.
template <class Number, class Wrapping = Number>
constexpr std::array<ReductionKernels::Folds, kArithmeticOps> folds_of_all() {
  using enum ReduceOp;
  return {folds_of<Wrapping, sum>(), folds_of<Wrapping, product>(), folds_of<Number, min>(),
          folds_of<Number, max>(), folds_of<Wrapping, sum>()};
}

inline constexpr ReductionKernels kReductionKernels = {
    .folds = {folds_of_all<Plain<double>>(), folds_of_all<Plain<float>>(), folds_of_all<Float16>(),
              folds_of_all<BFloat16>(), folds_of_all<Plain<std::int8_t>, Plain<std::uint8_t>>(),
              folds_of_all<Plain<std::int32_t>, Plain<std::uint32_t>>(),
              folds_of_all<Plain<std::int64_t>, Plain<std::uint64_t>>(), folds_of_all<Plain<std::uint8_t>>(),
              folds_of_all<Plain<std::int16_t>, Plain<std::uint16_t>>(), folds_of_all<Plain<std::uint16_t>>(),
              folds_of_all<Plain<std::uint32_t>>(), folds_of_all<Plain<std::uint64_t>>()},
    .bitwise = {folds_of<Plain<std::uint8_t>, ReduceOp::bit_and>(),
                folds_of<Plain<std::uint8_t>, ReduceOp::bit_or>(),
                folds_of<Plain<std::uint8_t>, ReduceOp::bit_xor>()},
    .divide = {divide<Plain<double>>, divide<Plain<float>>, divide<Float16>, divide<BFloat16>,
               divide_integers<std::int8_t>, divide_integers<std::int32_t>, divide_integers<std::int64_t>,
               divide_integers<std::uint8_t>, divide_integers<std::int16_t>, divide_integers<std::uint16_t>,
               divide_integers<std::uint32_t>, divide_integers<std::uint64_t>},
};

}  // namespace WEFT_REDUCTIONS
}  // namespace weft::device::cpu
