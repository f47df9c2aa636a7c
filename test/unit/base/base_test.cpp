// Small utilities that everything else builds on.
#include <cmath>

#include <gtest/gtest.h>

#include <limits>

#include "weft/base/hash.h"
#include "weft/base/inline_vector.h"
#include "weft/base/median.h"
#include "weft/base/nearest.h"
#include "weft/base/pool.h"
#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/base/symbols.h"
#include "weft/base/units.h"
#include "weft/base/utf8.h"

namespace weft {
namespace {

TEST(Units, ReadCommonSpellings) {
  EXPECT_EQ(*parse_quantity("40 GiB"), (Quantity{40.0 * 1073741824, Dimension::bytes}));
  EXPECT_EQ(*parse_quantity("40GiB"), (Quantity{40.0 * 1073741824, Dimension::bytes}));
  EXPECT_EQ(*parse_quantity(" 450 GB/s "), (Quantity{450e9, Dimension::bytes_per_second}));
  EXPECT_EQ(*parse_quantity("400 Gb/s"), (Quantity{50e9, Dimension::bytes_per_second}));
  EXPECT_DOUBLE_EQ(parse_quantity("1.5 us")->value, 1.5e-6);
  EXPECT_EQ(*parse_quantity("989 TFLOP/s"), (Quantity{989e12, Dimension::flops_per_second}));
  EXPECT_EQ(*parse_quantity("12"), (Quantity{12, Dimension::count}));
  EXPECT_EQ(parse_quantity("12 parsec").error().message, "unknown unit 'parsec'");
  EXPECT_FALSE(parse_quantity("").ok());
  EXPECT_FALSE(parse_quantity("1e999 s").ok());
}

TEST(Units, PrintThreeDigits) {
  EXPECT_EQ(print_bytes(0), "0 B");
  EXPECT_EQ(print_bytes(1000), "1000 B");
  EXPECT_EQ(print_bytes(1023.9), "1 KiB");  // not "1024 B"
  EXPECT_EQ(print_bytes(40.0 * 1073741824), "40 GiB");
  EXPECT_EQ(print_seconds(1.05e-3), "1.05 ms");
  EXPECT_EQ(print_seconds(0.9999), "1 s");
  EXPECT_EQ(print_count(124439808), "124 M");
  EXPECT_EQ(print_exact(124439808), "124,439,808");
  EXPECT_EQ(print_exact(-1234), "-1,234");
  EXPECT_EQ(print_exact(999), "999");
  EXPECT_EQ(print_exact(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Nearest, FindsTyposOnly) {
  constexpr std::string_view kNames[] = {"gpt2", "gpt3_175b", "resnet50", "vgg16", "d", "f"};
  EXPECT_EQ(nearest("gtp2", kNames), "gpt2");        // two neighbours swapped
  EXPECT_EQ(nearest("resnet", kNames), "resnet50");  // the end missing
  EXPECT_EQ(nearest("RESNET50", kNames), "resnet50");
  EXPECT_EQ(nearest("dd", kNames), "d");
  EXPECT_EQ(nearest("q", kNames), "");  // every one-letter name is one edit away: no suggestion
  EXPECT_EQ(nearest("transformer", kNames), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kNames), "");
}

// Plans are cached on disk by content and compared across machines, so these digits must never
// change.
TEST(Hash, IsTheSameEverywhere) {
  EXPECT_EQ(Hasher().digest().hex(), "4ac072a968fd80e473ab1dea0f988045");
  EXPECT_EQ(Hasher().text("contract").number(3).real(0.5).digest().hex(), "9bb2d2a84cf92abfd068bbba20c1a0f9");
}

TEST(Hash, DistinguishesContent) {
  EXPECT_NE(Hasher().text("ab").text("c").digest(), Hasher().text("a").text("bc").digest());
  EXPECT_NE(Hasher().number(1).number(2).digest(), Hasher().number(2).number(1).digest());
  EXPECT_NE(Hasher().text("").digest(), Hasher().digest());
  EXPECT_EQ(Hasher().real(0.0).digest(), Hasher().real(-0.0).digest());
}

TEST(Symbols, EqualTextsShareASymbol) {
  Symbols symbols;
  for (int i = 0; i < 10'000; ++i)
    EXPECT_EQ(symbols.intern("name" + std::to_string(i)).value, static_cast<std::uint32_t>(i));
  for (int i = 0; i < 10'000; ++i)
    EXPECT_EQ(symbols.find("name" + std::to_string(i)).value, static_cast<std::uint32_t>(i));
  EXPECT_FALSE(symbols.find("other").valid());
  EXPECT_EQ(symbols.text(Symbol(7u)), "name7");
  const Symbols copy = symbols;
  EXPECT_EQ(copy.find("name9999"), symbols.find("name9999"));
  EXPECT_TRUE(symbols.intern("").valid());
}

// Reference values of Philox-4x32-10, from the known-answer file of the Random123 distribution.
TEST(Random, PhiloxMatchesReferenceValues) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = normal_at(1, 2, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

// Independent of compiler and library: compared with the definition, to the last digits.
TEST(Random, NormalNumbersAreTheSameEverywhere) {
  EXPECT_EQ(normal_at(1, 2, 0), -0x1.b727cb6c8a3bbp-2);
  EXPECT_EQ(normal_at(1, 2, 1), 0x1.9fa8fbcadd6bdp+0);
  EXPECT_EQ(normal_at(1, 2, 1'000'003), 0x1.3ebaf5d35b89dp+0);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto words = philox(1, 2, i / 2);
    const double radius = (words[i % 2 * 2] + 0.5) * 0x1p-32, turn = words[i % 2 * 2 + 1] * 0x1p-32;
    const double expected = std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * turn);
    ASSERT_NEAR(normal_at(1, 2, i), expected, 1e-14) << i;
  }
  // Any range, from any start.
  for (const std::uint64_t first : {0u, 1u, 7u, 16u, 1001u})
    for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 40u}) {
      std::vector<double> some(count);
      normals_at(1, 2, first, some);
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(some[i], normal_at(1, 2, first + i)) << first << " " << i;
    }
}

TEST(Pool, SpansDoNotMove) {
  Pool<int> pool;
  std::vector<std::span<int>> spans;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int> items(static_cast<std::size_t>(i % 7), i);
    spans.push_back(pool.keep(items));
  }
  for (int i = 0; i < 1000; ++i)
    for (const int item : spans[static_cast<std::size_t>(i)]) EXPECT_EQ(item, i);
}

TEST(InlineVector, GrowsAndMoves) {
  InlineVector<int, 2> items = {1, 2};
  for (int i = 3; i <= 100; ++i) items.push_back(i);
  items.push_back(items[0]);  // one of its own elements, while it grows
  EXPECT_EQ(items.size(), 101u);
  EXPECT_EQ(items.back(), 1);
  const InlineVector<int, 2> copy = items;
  const InlineVector<int, 2> moved = std::move(items);
  EXPECT_EQ(copy[99], 100);
  EXPECT_EQ(moved[99], 100);
  EXPECT_TRUE(items.empty());  // NOLINT: what a moved-from vector holds is part of its contract
}

TEST(Median, IsTheMiddleElementOrTheMeanOfTwo) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({1e9, 1, 1, 1}), 1);
  EXPECT_THROW(median({}), InternalError);
}

Result<int> half(int x) {
  if (x % 2 != 0) return user_error("odd");
  return x / 2;
}
Result<int> quarter(int x) {
  WEFT_TRY(once, half(x));
  WEFT_TRY(twice, half(once));
  return twice;
}

TEST(Result, TryPropagatesErrors) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_THROW(quarter(6).value(), InternalError);
}

TEST(Utf8, InvalidBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("日é a"), "日é a");
  EXPECT_EQ(valid_utf8("a\x80\xE2\x82z\xFF"), "a\uFFFD\uFFFD\uFFFDz\uFFFD");
  EXPECT_EQ(valid_utf8(""), "");
}

}  // namespace
}  // namespace weft
