// Numbers as they are written in files.
#include <gtest/gtest.h>

#include <string>

#include "weft/base/number.h"

namespace weft {
namespace {

TEST(ReadNumber, RequiresTheWholeTextToBeANumber) {
  EXPECT_EQ(read_number<int>("42"), 42);
  EXPECT_EQ(read_number<int>("-42"), -42);
  EXPECT_EQ(read_number<int>("007"), 7);
  EXPECT_EQ(read_number<std::uint64_t>("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(read_number<std::uint64_t>("ff", 0, 1000, 16), 255u);
  for (const std::string text :
       {"", "1e3", "7x", "0x10", " 7", "7 ", "+7", "--7", "7.0", "\t7", "7\n", "99999999999"})
    EXPECT_FALSE(read_number<int>(text)) << text;
  EXPECT_FALSE(read_number<std::uint64_t>("-1"));
  EXPECT_FALSE(read_number<std::uint64_t>("18446744073709551616"));
  EXPECT_FALSE(read_number<int>(std::string_view("7\0", 2)));
}

TEST(ReadNumber, ChecksTheRange) {
  for (int number = -5; number < 15; ++number)
    EXPECT_EQ(read_number(std::to_string(number), 0, 9).has_value(), number >= 0 && number <= 9) << number;
}

TEST(ReadNumber, AcceptsFiniteNumbersOnly) {
  EXPECT_EQ(read_number<double>("1e3"), 1000.0);
  EXPECT_EQ(read_number<double>("-2.5"), -2.5);
  for (const std::string text : {"", "inf", "-inf", "nan", "infinity", "1e999", "1.5x", " 1", "+1", "0x1p3"})
    EXPECT_FALSE(read_number<double>(text)) << text;
  EXPECT_FALSE(read_number("-0.1", 0.0, 1.0));
}

}  // namespace
}  // namespace weft
