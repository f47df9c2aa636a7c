// Every type and operation compared with plain loops, one number at a time.
#include "weft/device/cpu/reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace weft::device::cpu {
namespace {

// The value of a 16-bit float by its definition.
double half_value(std::uint16_t half, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (half & 0x7fff) >> mantissa_bits, mantissa = half & ((1 << mantissa_bits) - 1);
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// The nearest 16-bit float of the same sign, ties to even, found by bisection.
std::uint16_t nearest_half(float value, int exponent_bits) {
  if (std::isnan(value)) return 0x7fff;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  const auto infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  // Treats infinity as the next number up.
  const auto at = [&](int code) {
    if (code != infinity) return half_value(static_cast<std::uint16_t>(code), exponent_bits);
    return 2 * half_value(static_cast<std::uint16_t>(code - 1), exponent_bits) -
           half_value(static_cast<std::uint16_t>(code - 2), exponent_bits);
  };
  int below = 0, above = infinity;
  if (magnitude >= at(above)) return sign | infinity;
  while (above - below > 1) {
    const int middle = (below + above) / 2;
    (at(middle) <= magnitude ? below : above) = middle;
  }
  const double down = magnitude - at(below), up = at(above) - magnitude;
  const bool upward = up < down || (up == down && below % 2 == 1);
  return static_cast<std::uint16_t>(sign | (upward ? above : below));
}

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};
template <class T>
constexpr int kExponentBits = std::is_same_v<T, F16> ? 5 : 8;
template <class T>
constexpr bool kHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

template <class T>
auto widened(T x) {
  if constexpr (kHalf<T>)
    return static_cast<float>(half_value(x.bits, kExponentBits<T>));
  else
    return x;
}
template <class T, class U>
T narrowed(U x) {
  if constexpr (kHalf<T>)
    return {nearest_half(x, kExponentBits<T>)};
  else
    return static_cast<T>(x);
}

template <class U>
U combined(ReduceOp op, U a, U b) {
  if constexpr (std::is_integral_v<U>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::sum || op == ReduceOp::avg) return static_cast<U>(x + y);
    if (op == ReduceOp::product) return static_cast<U>(x * y);
    if (op == ReduceOp::bit_and) return static_cast<U>(x & y);
    if (op == ReduceOp::bit_or) return static_cast<U>(x | y);
    if (op == ReduceOp::bit_xor) return static_cast<U>(x ^ y);
  } else {
    if (op == ReduceOp::sum || op == ReduceOp::avg) return a + b;
    if (op == ReduceOp::product) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<U>::quiet_NaN();
  }
  return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
}

template <class T>
bool same(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (std::isnan(widened(a)) && std::isnan(widened(b))) return true;
  return widened(a) == widened(b);
}

template <class T>
void compare(ElementType type) {
  ASSERT_EQ(size_of(type), sizeof(T));
  std::mt19937_64 random(7 + static_cast<int>(type));
  for (const std::size_t elements : {0, 1, 3, 15, 16, 17, 63, 64, 200, 257})
    for (std::size_t op = 0; op < kReduceOps; ++op) {
      if (is_bitwise(static_cast<ReduceOp>(op)) && !is_whole(type)) continue;
      for (const std::size_t sources : {1, 2, 3, 4, 7, 8, 9, 20}) {
        // One element past alignment, with random bits: includes NaN, infinities and subnormals.
        std::vector<std::vector<T>> data(sources, std::vector<T>(elements + 1));
        for (auto& source : data)
          for (T& x : source) {
            const std::uint64_t bits = random();
            std::memcpy(&x, &bits, sizeof x);
          }
        std::vector<const void*> pointers;
        for (const auto& source : data) pointers.push_back(source.data() + 1);
        std::vector<T> expected(elements);
        for (std::size_t i = 0; i < elements; ++i) {
          auto value = widened(data[0][i + 1]);
          for (std::size_t k = 1; k < sources; ++k)
            value = combined(static_cast<ReduceOp>(op), value, widened(data[k][i + 1]));
          expected[i] = narrowed<T>(value);
        }
        std::vector<T> target(elements + 1);
        target[elements] = data[0][0];
        reduce(type, static_cast<ReduceOp>(op), target.data(), pointers, elements);
        EXPECT_TRUE(same(target[elements], data[0][0])) << "wrote past the end";
        // The target may be one of the sources, here the last.
        reduce(type, static_cast<ReduceOp>(op), data.back().data() + 1, pointers, elements);
        for (std::size_t i = 0; i < elements; ++i) {
          ASSERT_TRUE(same(target[i], expected[i]))
              << name(type) << ' ' << name(static_cast<ReduceOp>(op)) << " of " << sources << " at " << i;
          ASSERT_TRUE(same(data.back()[i + 1], expected[i]));
        }
      }
    }
}

TEST(reduction, AgreesWithPlainLoops) {
  compare<double>(ElementType::f64);
  compare<float>(ElementType::f32);
  compare<F16>(ElementType::f16);
  compare<BF16>(ElementType::bf16);
  compare<std::int8_t>(ElementType::i8);
  compare<std::int32_t>(ElementType::i32);
  compare<std::int64_t>(ElementType::i64);
  compare<std::uint8_t>(ElementType::u8);
  compare<std::int16_t>(ElementType::i16);
  compare<std::uint16_t>(ElementType::u16);
  compare<std::uint32_t>(ElementType::u32);
  compare<std::uint64_t>(ElementType::u64);
}

// All 65,536 patterns convert to f32 and back unchanged; values between two round to nearest even.
TEST(reduction, HalvesRoundToNearestEven) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    const int exponent_bits = type == ElementType::f16 ? 5 : 8;
    std::vector<std::uint16_t> all(65536), zero(65536, 0x8000), sum(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    reduce_pair(type, ReduceOp::sum, sum.data(), all.data(), zero.data(), all.size());  // x + -0 is x
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(half_value(all[i], exponent_bits)))
        EXPECT_TRUE(std::isnan(half_value(sum[i], exponent_bits)));
      else
        ASSERT_EQ(sum[i], all[i]);
    }
  }
  // 2049 is between 2048 and 2050; 2051 is between 2050 and 2052.
  const std::uint16_t f16_1 = 0x3c00, f16_2048 = 0x6800, f16_2050 = 0x6801, f16_2052 = 0x6802;
  std::uint16_t sum = 0;
  reduce_pair(ElementType::f16, ReduceOp::sum, &sum, &f16_2048, &f16_1, 1);
  EXPECT_EQ(sum, f16_2048);
  reduce_pair(ElementType::f16, ReduceOp::sum, &sum, &f16_2050, &f16_1, 1);
  EXPECT_EQ(sum, f16_2052);
  // Rounded once: 2048 + 1 + 1 is 2050, although 2048 + 1 alone would round to 2048.
  const void* const three[] = {&f16_2048, &f16_1, &f16_1};
  reduce(ElementType::f16, ReduceOp::sum, &sum, three, 1);
  EXPECT_EQ(sum, f16_2050);
  // 65504 is the largest; 65520 is halfway to the next value.
  const std::uint16_t largest = 0x7bff, sixteen = 0x4c00, eight = 0x4800;
  reduce_pair(ElementType::f16, ReduceOp::sum, &sum, &largest, &eight, 1);
  EXPECT_EQ(sum, largest);
  reduce_pair(ElementType::f16, ReduceOp::sum, &sum, &largest, &sixteen, 1);
  EXPECT_EQ(sum, 0x7c00);
}

TEST(reduction, KeepsTheOrderOfSources) {
  const float a = 1e8F, b = -1e8F, c = 1;
  float sum = 0;
  const void* const first[] = {&a, &b, &c};
  reduce(ElementType::f32, ReduceOp::sum, &sum, first, 1);
  EXPECT_EQ(sum, 1);
  const void* const second[] = {&a, &c, &b};
  reduce(ElementType::f32, ReduceOp::sum, &sum, second, 1);
  EXPECT_EQ(sum, 0);
}

TEST(reduction, Averages) {
  std::vector<float> floats(37, 10);
  finish_average(ElementType::f32, floats.data(), floats.size(), 4);
  EXPECT_EQ(floats, std::vector<float>(37, 2.5F));
  std::vector<std::int8_t> bytes = {-7, 7, 127, -128};
  finish_average(ElementType::i8, bytes.data(), bytes.size(), 2);
  EXPECT_EQ(bytes, (std::vector<std::int8_t>{-3, 3, 63, -64}));
  finish_average(ElementType::i8, bytes.data(), bytes.size(), 1000);
  EXPECT_EQ(bytes, std::vector<std::int8_t>(4, 0));
  std::vector<std::uint64_t> large = {~std::uint64_t{0}, 7};
  finish_average(ElementType::u64, large.data(), large.size(), 2);
  EXPECT_EQ(large, (std::vector<std::uint64_t>{~std::uint64_t{0} / 2, 3}));
  std::vector<std::uint16_t> halves(9, 0x4900);  // 10
  finish_average(ElementType::f16, halves.data(), halves.size(), 4);
  EXPECT_EQ(halves, std::vector<std::uint16_t>(9, 0x4100));
}

TEST(reduction, FindsNames) {
  for (std::size_t i = 0; i < kElementTypes; ++i)
    EXPECT_EQ(find_element_type(name(static_cast<ElementType>(i))), static_cast<ElementType>(i));
  for (std::size_t i = 0; i < kReduceOps; ++i)
    EXPECT_EQ(find_reduce_op(name(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  EXPECT_EQ(find_element_type("float"), ElementType::f32);
  EXPECT_EQ(find_element_type("bfloat16"), ElementType::bf16);
  EXPECT_EQ(find_reduce_op("prod"), ReduceOp::product);
  EXPECT_EQ(find_element_type("uint16"), ElementType::u16);
  EXPECT_EQ(find_reduce_op("bxor"), ReduceOp::bit_xor);
  EXPECT_EQ(find_element_type("f8"), std::nullopt);
}

}  // namespace
}  // namespace weft::device::cpu
