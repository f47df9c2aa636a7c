// Rows of numbers as text, and every way in which they can be wrong.
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/formats/csv.h"

namespace weft::formats {
namespace {

using plan::DType;

const std::vector<Field> kSmall = {{"pixels", 2, DType::f32}, {"label", 1, DType::i32}};

template <class T>
std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}

std::string error_of(std::string_view text, std::span<const Field> fields = kSmall) {
  const auto table = parse_csv(text, fields, "digits.csv");
  return table.ok() ? "no error" : table.error().message;
}

float one_float(std::string_view text) {
  const std::vector<Field> field = {{"x", 1, DType::f32}};
  const auto table = parse_csv(text, field, "x.csv");
  EXPECT_TRUE(table.ok()) << text;
  return table.ok() ? table->values<float>(0)[0] : std::numeric_limits<float>::quiet_NaN();
}

// With one number per line.
std::vector<std::uint32_t> bits_of(std::string_view lines) {
  const std::vector<Field> field = {{"x", 1, DType::f32}};
  const auto table = parse_csv(lines, field, "x.csv");
  EXPECT_TRUE(table.ok()) << table.error().message;
  std::vector<std::uint32_t> bits;
  if (table.ok())
    for (const float value : table->values<float>(0)) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(Csv, ReadsRowsIntoFields) {
  const auto table = parse_csv("0.5,1,7\n-2,3e2,1\n", kSmall, "digits.csv");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 2);
  EXPECT_EQ(list(table->values<float>(0)), (std::vector<float>{0.5f, 1, -2, 300}));
  EXPECT_EQ(list(table->values<std::int32_t>(1)), (std::vector<std::int32_t>{7, 1}));
  EXPECT_EQ(list(table->row<float>(0, 1)), (std::vector<float>{-2, 300}));
  EXPECT_EQ(table->fields()[1].name, "label");
  EXPECT_THROW(table->values<float>(1), InternalError);  // a label is not a float
}

TEST(Csv, IgnoresInsignificantDifferences) {
  for (const std::string_view text : {
           "1,2,3\n4,5,6",                 // no newline at the end
           "1,2,3\r\n4,5,6\r\n",           // Windows line ends
           "\n\n1,2,3\n\n   \n4,5,6\n\n",  // blank lines
           " 1 ,\t2, 3 \n4,5 ,6",          // spaces
           "a,b,c\n1,2,3\n4,5,6\n",        // a header
           "\n pixel 0 ,\"b\",label\n1,2,3\n4,5,6\n",
           "\xef\xbb\xbf"
           "a,b,c\n1,2,3\n4,5,6",  // a byte order mark
           "\xef\xbb\xbf"
           "1,2,3\n4,5,6",
           "+1,2.0,+3\n4,5.,6.0\n",
           "1,2,3e0\n4,5,0.6e1\n",
       }) {
    const auto table = parse_csv(text, kSmall, "digits.csv");
    ASSERT_TRUE(table.ok()) << text << table.error().message;
    EXPECT_EQ(list(table->values<float>(0)), (std::vector<float>{1, 2, 4, 5})) << text;
    EXPECT_EQ(list(table->values<std::int32_t>(1)), (std::vector<std::int32_t>{3, 6})) << text;
  }
}

TEST(Csv, ChecksTheNumberOfValuesPerLine) {
  const std::vector<Field> fields = {{"pixels", 64, DType::f32}, {"label", 1, DType::i32}};
  std::string row = "0";
  for (int i = 1; i < 65; ++i) row += ",0";
  std::string text;
  for (int i = 1; i < 17; ++i) text += row + '\n';
  EXPECT_EQ(error_of(text + row.substr(2), fields),
            "digits.csv line 17: expected 65 values (pixels 64, label 1), found 64");
  EXPECT_EQ(error_of(text + row + ",1", fields),
            "digits.csv line 17: expected 65 values (pixels 64, label 1), found 66");
  EXPECT_EQ(error_of("1,2,3\n\n1,2,\n"), "digits.csv line 3, value 3 (label): expected a number, found ''");
  EXPECT_EQ(error_of("1,2,3\n1,2,3,\n"), "digits.csv line 2: expected 3 values (pixels 2, label 1), found 4");
  EXPECT_EQ(error_of("1,2,3\n,,\n"), "digits.csv line 2, value 1 (pixels): expected a number, found ''");
  EXPECT_EQ(error_of("1,2,3\n1,,3\n"), "digits.csv line 2, value 2 (pixels): expected a number, found ''");
  EXPECT_EQ(error_of("1;2;3"), "digits.csv line 1: expected 3 values (pixels 2, label 1), found 1");
  const std::vector<Field> one = {{"x", 1, DType::f32}};
  EXPECT_EQ(error_of("1\n1,2\n", one), "digits.csv line 2: expected 1 value (x 1), found 2");
}

TEST(Csv, RequiresNumbers) {
  const std::string eight = "1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n";
  EXPECT_EQ(error_of(eight + "0,abc,7"),
            "digits.csv line 9, value 2 (pixels): expected a number, found 'abc'");
  EXPECT_EQ(error_of(eight + "0,1 2,7"),
            "digits.csv line 9, value 2 (pixels): expected a number, found '1 2'");
  EXPECT_EQ(error_of(eight + "0,0x10,7"),
            "digits.csv line 9, value 2 (pixels): expected a number, found '0x10'");
  EXPECT_EQ(error_of(eight + "0,+-1,7"),
            "digits.csv line 9, value 2 (pixels): expected a number, found '+-1'");
  EXPECT_EQ(error_of(eight + "0,\"1\"x,7"),
            "digits.csv line 9: expected a comma after a value in quotes, found 'x,7'");
  EXPECT_EQ(
      error_of(eight + "0,\x01\xff" + std::string(100, 'x') + ",7"),
      "digits.csv line 9, value 2 (pixels): expected a number, found '??" + std::string(38, 'x') + "...'");
  // A first line with only some names is not a header: a typo there must not drop a row.
  EXPECT_EQ(parse_csv("0,1,label\n", kSmall, "digits.csv").error().hint,
            "the first line counts as a header when no value starts like a number");
  EXPECT_EQ(error_of("0,abc,7"), "digits.csv line 1, value 2 (pixels): expected a number, found 'abc'");
}

TEST(Csv, RequiresFiniteNumbers) {
  EXPECT_EQ(error_of("1,2,3\n1,nan,3"),
            "digits.csv line 2, value 2 (pixels): found nan, expected a finite number");
  EXPECT_EQ(error_of("nan,2,3"), "digits.csv line 1, value 1 (pixels): found nan, expected a finite number");
  EXPECT_EQ(error_of("1,-inf,3"),
            "digits.csv line 1, value 2 (pixels): found -inf, expected a finite number");
  EXPECT_EQ(error_of("1,2,NaN"), "digits.csv line 1, value 3 (label): found NaN, expected a finite number");
  EXPECT_EQ(error_of("1,1e39,3"),
            "digits.csv line 1, value 2 (pixels): expected a number from -3.4e+38 to 3.4e+38 (pixels is "
            "float32), found 1e39");
  EXPECT_EQ(error_of("1,1e999,3"),
            "digits.csv line 1, value 2 (pixels): expected a number from -3.4e+38 to 3.4e+38 (pixels is "
            "float32), found 1e999");
}

TEST(Csv, RequiresIntegerLabels) {
  EXPECT_EQ(error_of("1,2,3\n1,2,3\n1,2,3\n1,2,3.5"),
            "digits.csv line 4, value 3 (label): expected a whole number (label is int32), found 3.5");
  EXPECT_EQ(error_of("1,2,1e-999"),
            "digits.csv line 1, value 3 (label): expected a whole number (label is int32), found 1e-999");
  for (const std::string big : {"2147483648", "-2147483649", "3e9", "99999999999999999999"})
    EXPECT_EQ(error_of("1,2," + big),
              "digits.csv line 1, value 3 (label): expected a whole number from -2147483648 to 2147483647 "
              "(label is int32), found " +
                  big);
  EXPECT_EQ(error_of("1,2,2147483647"), "no error");
  EXPECT_EQ(error_of("1,2,-2147483648"), "no error");
  const std::vector<Field> wide = {{"token", 1, DType::i64}};
  EXPECT_EQ(list(parse_csv("9223372036854775807\n-9223372036854775808", wide, "x")->values<std::int64_t>(0)),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(error_of("9223372036854775808", wide),
            "digits.csv line 1, value 1 (token): expected a whole number from -9223372036854775808 to "
            "9223372036854775807 (token is int64), found 9223372036854775808");
}

TEST(Csv, RequiresRows) {
  for (const std::string_view text : {"", "\n", "a,b,c\n", " \r\n\r\n", "\xef\xbb\xbf"})
    EXPECT_EQ(error_of(text), "digits.csv has no rows") << text;
}

TEST(Csv, DetectsReorderedColumns) {
  EXPECT_EQ(error_of("label,a,b\n3,1,2\n"),
            "digits.csv line 1: expected label as value 3, found it as value 1");
  EXPECT_EQ(error_of("a,b,label\n1,2,3\n"), "no error");
  EXPECT_EQ(error_of("label,b,label\n1,2,3\n"),
            "digits.csv line 1: expected label as value 3, found it as value 1");
}

TEST(Csv, SupportsOnlySomeTypes) {
  const std::vector<Field> half = {{"x", 1, DType::bf16}};
  const auto table = parse_csv("1", half, "x.csv");
  EXPECT_EQ(table.error().message, "x: data files can only fill f32, f64, i32 and i64, found bf16");
}

// A very wide row needs no memory in advance.
TEST(Csv, WideRowsNeedNoMemory) {
  const std::vector<Field> vast = {{"x", kMostWidth - 1, DType::f32}, {"y", 1, DType::i32}};
  EXPECT_EQ(error_of("1,2\n", vast), fmt::format("digits.csv line 1: expected {} values (x {}, y 1), found 2",
                                                 kMostWidth, kMostWidth - 1));
  EXPECT_EQ(error_of(std::string(1000, '\n'), vast), "digits.csv has no rows");
  const std::vector<Field> more = {{"x", kMostWidth, DType::f32}, {"y", 1, DType::i32}};
  EXPECT_EQ(error_of("1", more),
            fmt::format("a row of data is too wide: expected at most {} values", kMostWidth));
}

TEST(Csv, ReadsNumbersExactly) {
  EXPECT_EQ(one_float("0.1"), 0.1f);
  EXPECT_EQ(one_float("+0.1"), 0.1f);
  EXPECT_EQ(one_float("16777217"), 16777216.0f);
  EXPECT_EQ(one_float("3.4028235e38"), std::numeric_limits<float>::max());
  EXPECT_EQ(one_float("1e-45"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(one_float("1e-60"), 0.0f);
  EXPECT_EQ(one_float("1e-999"), 0.0f);
  EXPECT_TRUE(std::signbit(one_float("-0")));
  Random random(1);
  std::string text;
  std::vector<std::uint32_t> expected;
  while (expected.size() < 20'000) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    text += fmt::format("{}\n", value);
    expected.push_back(bits);
  }
  EXPECT_EQ(bits_of(text), expected);
}

// Short numbers take a fast path with the same result.
TEST(Csv, ReadsShortNumbersExactly) {
  for (const std::string_view text :
       {"0", "-0", "-0.0", "7.", ".5", "-.5", "0.1", "1234567", "12345678", "123456.7", "0.000001",
        "0.0000001", "0.00000001", "9999999", "0.9999999", "00000001"}) {
    float expected = 0;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(one_float(text)), std::bit_cast<std::uint32_t>(expected)) << text;
  }
  Random random(2);
  std::string all;
  std::vector<std::uint32_t> expected_bits;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = std::to_string(random.below(100'000'000));
    text.resize(1 + random.below(text.size()));
    if (random.below(4) != 0) text.insert(random.below(text.size() + 1), 1, '.');
    if (random.below(2) != 0) text.insert(0, 1, '-');
    float expected = 0;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    all += text + "\n";
    expected_bits.push_back(std::bit_cast<std::uint32_t>(expected));
  }
  EXPECT_EQ(bits_of(all), expected_bits);
  const std::vector<Field> field = {{"x", 1, DType::f32}};
  for (const std::string_view text : {"-", ".", "-.", "--1", "1.2.3", "1-", "1e", "5x"})
    EXPECT_FALSE(parse_csv(text, field, "x.csv").ok()) << text;
}

// Every prefix of a valid file gives valid rows, or an error.
TEST(Csv, SurvivesTruncation) {
  const std::string text = "a,b,c\r\n0.5,1,7\r\n-2,3e2,1\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto table = parse_csv(text.substr(0, length), kSmall, "digits.csv");
    if (table.ok()) {
      EXPECT_EQ(table->values<float>(0).size(), 2 * static_cast<std::size_t>(table->rows()));
    }
  }
}

}  // namespace
}  // namespace weft::formats
