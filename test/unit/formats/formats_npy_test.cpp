// Arrays as numpy writes them, and every way in which they can be wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/formats/byte_source.h"
#include "weft/formats/npy.h"

namespace weft::formats {
namespace {

using plan::DType;

const std::vector<Field> kSmall = {{"pixels", 2, DType::f32}, {"label", 1, DType::i32}};

// A file of format 1.0, padded as numpy pads it.
template <class T>
std::string npy(std::string_view descr, std::string_view shape, const std::vector<T>& numbers,
                std::string_view order = "False", char major = 1) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
  const std::size_t before = major == 1 ? 10 : 12;
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  if (major != 1) file += std::string(2, '\0');
  file += header;
  file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
  return file;
}

template <class T>
std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}

std::string error_of(std::string_view bytes, std::span<const Field> fields = kSmall) {
  const auto table = parse_npy(bytes, fields, "rows.npy");
  return table.ok() ? "no error" : table.error().message;
}

template <class T>
void expect_one_to_six(std::string_view descr, char major = 1) {
  const std::string file = npy<T>(descr, "(2, 3)", {1, 2, 3, 4, 5, 6}, "False", major);
  const Result<Table> table = parse_npy(file, kSmall, "rows.npy");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 2);
  EXPECT_EQ(list(table->values<float>(0)), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(list(table->values<std::int32_t>(1)), (std::vector<std::int32_t>{3, 6}));
}

TEST(Npy, ReadsEveryElementAndVersion) {
  expect_one_to_six<float>("<f4");
  expect_one_to_six<double>("<f8");
  expect_one_to_six<std::int32_t>("<i4");
  expect_one_to_six<std::int64_t>("<i8");
  expect_one_to_six<std::uint8_t>("|u1");
  expect_one_to_six<std::uint16_t>("<u2");
  expect_one_to_six<std::uint32_t>("<u4");
  expect_one_to_six<std::uint64_t>("<u8");
  expect_one_to_six<std::int8_t>("|i1");
  expect_one_to_six<std::int16_t>("<i2");
  expect_one_to_six<float>("<f4", 2);
  expect_one_to_six<float>("<f4", 3);
}

// The limits of each type, and bits that mean something else in another type.
TEST(Npy, ConvertsEveryElementExactly) {
  const std::vector<Field> wide = {{"x", 2, DType::f64}, {"n", 1, DType::i64}};
  const auto read = [&](const std::string& file) {
    const auto table = parse_npy(file, wide, "rows.npy");
    return table.ok() ? fmt::format("{} {}", table->row<double>(0, 0), table->row<std::int64_t>(1, 0)[0])
                      : table.error().message;
  };
  EXPECT_EQ(read(npy<std::int8_t>("|i1", "(1, 3)", {-128, 127, -1})), "[-128, 127] -1");
  EXPECT_EQ(read(npy<std::uint8_t>("|u1", "(1, 3)", {128, 255, 255})), "[128, 255] 255");
  EXPECT_EQ(read(npy<std::int16_t>("<i2", "(1, 3)", {-32768, 32767, -1})), "[-32768, 32767] -1");
  EXPECT_EQ(read(npy<std::uint16_t>("<u2", "(1, 3)", {0, 65535, 50256})), "[0, 65535] 50256");
  EXPECT_EQ(read(npy<std::uint32_t>("<u4", "(1, 3)", {0, 4294967295, 4294967295})),
            "[0, 4294967295] 4294967295");
  EXPECT_EQ(read(npy<std::uint64_t>("<u8", "(1, 3)", {0, 1, 9223372036854775807u})),
            "[0, 1] 9223372036854775807");
  EXPECT_EQ(
      read(npy<std::uint64_t>("<u8", "(1, 3)", {0, 1, 9223372036854775808u})),
      "rows.npy[0, 2] (n): expected a whole number from -9223372036854775808 to 9223372036854775807 (n is "
      "int64), found 9223372036854775808");
  EXPECT_EQ(read(npy<std::uint8_t>("|b1", "(1, 3)", {0, 1, 1})), "[0, 1] 1");
  EXPECT_EQ(read(npy<std::uint8_t>("|b1", "(1, 3)", {0, 2, 1})),
            "rows.npy[0, 1] (x): expected 0 or 1 for |b1, found 2");
  // Floating-point fields accept numbers beyond 64-bit integers.
  EXPECT_EQ(read(npy<std::uint64_t>("<u8", "(1, 3)", {0, 9223372036854775808u, 1})),
            "[0, 9.223372036854776e+18] 1");
  // 2^-24 is the least subnormal, 65504 the largest number; 0x7c00 is infinity, 0x7e00 NaN.
  EXPECT_EQ(read(npy<std::uint16_t>("<f2", "(1, 3)", {0x0001, 0xfbff, 0x3c00})),
            "[5.960464477539063e-08, -65504] 1");
  EXPECT_EQ(read(npy<std::uint16_t>("<f2", "(1, 3)", {0x7c00, 0, 0})),
            "rows.npy[0, 0] (x): found inf, expected a finite number");
  EXPECT_EQ(read(npy<std::uint16_t>("<f2", "(1, 3)", {0, 0, 0x3800})),
            "rows.npy[0, 2] (n): expected a whole number (n is int64), found 0.5");
}

TEST(Npy, RequiresAKnownElementType) {
  for (const std::string descr :
       {">f4", ">i2", "<c8", "<V2", "|O", "|S1", "<U1", "<f3", "u2", "<u1", "|f4", "<M8[D]"})
    EXPECT_EQ(error_of(npy<std::uint16_t>(descr, "(1, 3)", {1, 2, 3})),
              fmt::format(
                  "rows.npy holds {}, expected one of <f2, <f4, <f8, |i1, <i2, <i4, <i8, |u1, <u2, <u4, <u8 "
                  "or |b1 (little-endian)",
                  descr));
}

TEST(Npy, RequiresTheModelsShape) {
  const std::vector<Field> wide = {{"pixels", 64, DType::f32}, {"label", 1, DType::i32}};
  EXPECT_EQ(error_of(npy("<f4", "(1, 64)", std::vector<float>(64)), wide),
            "rows.npy has 64 columns, expected 65 (pixels 64, label 1)");
  EXPECT_EQ(error_of(npy<float>("<f4", "(3,)", {1, 2, 3})),
            "rows.npy has 1 column, expected 3 (pixels 2, label 1)");
  EXPECT_EQ(error_of(npy<float>("<f4", "()", {1})), "rows.npy is a single number, expected rows of 3");
  EXPECT_EQ(error_of(npy<float>("<f4", "(1, 3)", {1, 2, 3}, "True")),
            "rows.npy is in Fortran order, expected C order");
  EXPECT_EQ(error_of(npy<float>("<f4", "(0, 3)", {})), "rows.npy has no rows");
}

TEST(Npy, RequiresValuesInRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of(npy<double>("<f8", "(2, 3)", {1, 2, 3, 4, kNan, 6})),
            "rows.npy[1, 1] (pixels): found nan, expected a finite number");
  EXPECT_EQ(error_of(npy<double>("<f8", "(1, 3)", {1, 2, -INFINITY})),
            "rows.npy[0, 2] (label): found -inf, expected a finite number");
  EXPECT_EQ(error_of(npy<float>("<f4", "(1, 3)", {1, 2, 3.5f})),
            "rows.npy[0, 2] (label): expected a whole number (label is int32), found 3.5");
  EXPECT_EQ(
      error_of(npy<std::int64_t>("<i8", "(1, 3)", {1, 2, 3'000'000'000})),
      "rows.npy[0, 2] (label): expected a whole number from -2147483648 to 2147483647 (label is int32), "
      "found 3000000000");
  EXPECT_EQ(error_of(npy<double>("<f8", "(1, 3)", {1, 1e39, 3})),
            "rows.npy[0, 1] (pixels): expected a number from -3.4e+38 to 3.4e+38 (pixels is float32), found "
            "1e+39");
}

TEST(Npy, RequiresTheExactFileSize) {
  const std::string file = npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(error_of(file), "no error");
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(error_of(file.substr(0, length)), "no error") << length;
  EXPECT_EQ(error_of(file.substr(0, file.size() - 1)),
            "rows.npy is truncated: its header states 2 rows of 12 bytes, found 23 bytes");
  EXPECT_EQ(error_of(file + "x"), "rows.npy: expected 24 bytes of numbers, found 25");
  EXPECT_EQ(error_of(npy<float>("<f4", "(9223372036854775807, 3)", {1})),
            "rows.npy is truncated: its header states 9223372036854775807 rows of 12 bytes, found 4 bytes");
}

TEST(Npy, RequiresAHeader) {
  EXPECT_EQ(error_of("PK\x03\x04 a zip"),
            "rows.npy is not an npy file: expected it to begin with \\x93NUMPY");
  EXPECT_EQ(error_of(""), "rows.npy is not an npy file: expected it to begin with \\x93NUMPY");
  EXPECT_EQ(error_of("\x93NUMPY"), "rows.npy is truncated: its header is missing");
  EXPECT_EQ(error_of(npy<float>("<f4", "(1, 3)", {1, 2, 3}, "False", 4)),
            "rows.npy: expected npy version 1.0, 2.0 or 3.0, found 4.0");
  EXPECT_EQ(error_of(npy<float>("<f4", "(1, -3)", {1, 2, 3})),
            "rows.npy: expected a header with descr, fortran_order and shape, found {'descr': '<f4', "
            "'fortran_order': False,...");
}

// Whatever value one byte takes, the result is a table or an error.
TEST(Npy, SurvivesAnyChangedByte) {
  const std::string file = npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
  for (std::size_t at = 0; at < file.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto table = parse_npy(changed, kSmall, "rows.npy");
      if (table.ok()) {
        EXPECT_EQ(table->rows(), 2);
      }
    }
}

// An array followed by endless data, as a small archive may contain.
class EndlessRest final : public ByteSource {
 public:
  explicit EndlessRest(std::string begin) : begin_(std::move(begin)), zeros_(1 << 20, '\0') {}
  Result<std::string_view> next() override { return ++times == 1 ? std::string_view(begin_) : zeros_; }
  double share() const override { return 0.5; }
  int times = 0;

 private:
  std::string begin_, zeros_;
};

TEST(Npy, ReadsNoMoreThanTheHeaderStates) {
  EndlessRest source(npy<float>("<f4", "(1, 3)", {1, 2, 3}));
  const auto read = read_npy(source, kSmall, "bomb.npz: x.npy");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "bomb.npz: x.npy: expected 12 bytes of numbers, found more");
  EXPECT_LE(source.times, 2);
}

}  // namespace
}  // namespace weft::formats
