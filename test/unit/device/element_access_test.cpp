// 16-bit and 8-bit floats: each of the 65,536 patterns is read and written, and values between
// neighbours are rounded.
#include "weft/device/element_access.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace weft::device {
namespace {

struct ShortReal {
  const char* name;
  plan::DType dtype;
  double (*from)(std::uint16_t);
  std::uint16_t (*to)(double);
  std::uint16_t infinite;
  double largest, least;
};

class ShortReals : public testing::TestWithParam<ShortReal> {};

TEST_P(ShortReals, EveryNumberReadsBack) {
  const ShortReal& real = GetParam();
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const double value = real.from(static_cast<std::uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(real.from(real.to(value)))) << bits;
    else
      EXPECT_EQ(real.to(value), bits) << value;
  }
}

// Halfway rounds to even; slightly more or less rounds to the nearer neighbour, even by less than a
// float can resolve.
TEST_P(ShortReals, RoundsToNearest) {
  const ShortReal& real = GetParam();
  for (std::uint32_t bits = 0; bits < real.infinite; ++bits) {
    const double low = real.from(static_cast<std::uint16_t>(bits));
    // The largest number has no upper neighbour: the next value would be infinite.
    const double high = bits + 1u == real.infinite ? 2 * low - real.from(static_cast<std::uint16_t>(bits - 1))
                                                   : real.from(static_cast<std::uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    const std::uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const double signs = sign == 0 ? 1 : -1;
      EXPECT_EQ(real.to(signs * middle), sign | even) << middle;
      EXPECT_EQ(real.to(signs * std::nextafter(middle, high)), sign | (bits + 1)) << middle;
      EXPECT_EQ(real.to(signs * std::nextafter(middle, low)), sign | bits) << middle;
    }
  }
}

TEST_P(ShortReals, HandlesTheEndsOfTheRange) {
  const ShortReal& real = GetParam();
  EXPECT_EQ(real.to(0.0), 0);
  EXPECT_EQ(real.to(-0.0), 0x8000);
  EXPECT_EQ(real.from(real.to(real.largest)), real.largest);
  EXPECT_EQ(real.from(real.to(real.least)), real.least);
  EXPECT_EQ(real.to(real.least / 2), 0);  // halfway to zero, which is even
  for (const double huge : {1e300, static_cast<double>(INFINITY)}) {
    EXPECT_EQ(real.to(huge), real.infinite);
    EXPECT_EQ(real.to(-huge), 0x8000 | real.infinite);
  }
  EXPECT_EQ(real.to(5e-324), 0);
}

// As plans access it: an element at a position in memory.
TEST_P(ShortReals, LoadsStoredElements) {
  const ShortReal& real = GetParam();
  std::array<std::byte, 8> memory{};
  for (const double value : {0.0, 1.0, -0.5, 0.25, 3.0}) {
    store_element(real.dtype, memory.data(), 2, value);
    EXPECT_EQ(load_element(real.dtype, memory.data(), 2), value);
    EXPECT_EQ(load_element(real.dtype, memory.data(), 1), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Both, ShortReals,
    testing::Values(ShortReal{"f16", plan::DType::f16, from_f16, to_f16, 0x7c00, 65504, 0x1p-24},
                    ShortReal{"bf16", plan::DType::bf16, from_bf16, to_bf16, 0x7f80, 0x1.FEp127, 0x1p-133}),
    [](const auto& info) { return std::string(info.param.name); });

struct ByteReal {
  plan::DType dtype;
  double (*from)(std::uint8_t);
  std::uint8_t (*to)(double);
  std::uint32_t count;  // numbers from 0 up
  double largest, least;
};

constexpr ByteReal kByteReals[] = {{plan::DType::f8e4m3, from_e4m3, to_e4m3, 0x7f, 448, 0x1p-9},
                                   {plan::DType::f8e5m2, from_e5m2, to_e5m2, 0x7c, 57344, 0x1p-16}};

// Numbers read back unchanged, and values between two round to the nearest, ties to even.
TEST(ByteReals, RoundToNearest) {
  for (const ByteReal& real : kByteReals) {
    EXPECT_EQ(real.from(static_cast<std::uint8_t>(real.count - 1)), real.largest);
    EXPECT_EQ(real.from(1), real.least);
    for (std::uint32_t bits = 0; bits < real.count; ++bits) {
      const double low = real.from(static_cast<std::uint8_t>(bits));
      EXPECT_EQ(real.to(low), bits);
      EXPECT_EQ(real.to(-low), bits | 0x80);
      if (bits + 1 == real.count) continue;
      const double high = real.from(static_cast<std::uint8_t>(bits + 1)), middle = (low + high) / 2;
      EXPECT_LT(low, high);
      EXPECT_EQ(real.to(middle), bits % 2 == 0 ? bits : bits + 1);
      EXPECT_EQ(real.to(std::nextafter(middle, high)), bits + 1);
      EXPECT_EQ(real.to(std::nextafter(middle, low)), bits);
    }
    EXPECT_TRUE(std::isnan(real.from(real.to(NAN))));
  }
}

// e4m3 has no infinity: up to halfway to the next value it rounds to the largest number, beyond
// that to NaN.
TEST(ByteReals, HandleTheEndsOfTheRange) {
  EXPECT_EQ(from_e4m3(to_e4m3(464)), 448);
  for (const double huge : {464.1, 480.0, 1e300, static_cast<double>(INFINITY)})
    EXPECT_TRUE(std::isnan(from_e4m3(to_e4m3(huge)))) << huge;
  EXPECT_EQ(from_e5m2(to_e5m2(61439)), 57344);
  for (const double huge : {61440.0, 1e300, static_cast<double>(INFINITY)})
    EXPECT_EQ(from_e5m2(to_e5m2(-huge)), -INFINITY) << huge;
}

}  // namespace
}  // namespace weft::device
