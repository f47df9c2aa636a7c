// The prime field: exact arithmetic, with uninterpreted functions and order.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/number.h"

namespace weft::ops {
namespace {

const Numbers<Field> kNumbers{.key = 11};

RC_GTEST_PROP(OpsNumber, FieldArithmeticIsExact, (std::uint64_t a, std::uint64_t b, std::uint64_t c)) {
  const Field x(a), y(b), z(c);
  RC_ASSERT(x + y == y + x);
  RC_ASSERT((x + y) * z == x * z + y * z);
  RC_ASSERT(x - y + y == x);
  RC_ASSERT(x + -x == Field());
  RC_ASSERT(x == Field() || x * x.inverse() == Field(1));
}

RC_GTEST_PROP(OpsNumber, IntegersRoundTrip, (std::int32_t value)) {
  RC_ASSERT(kNumbers.to_integer(kNumbers.from_integer(value)) == value);
  RC_ASSERT(kNumbers.from(value) == kNumbers.from_integer(value));
}

// A double is a fraction with a power of two in the denominator; in the field that fraction is
// exact.
RC_GTEST_PROP(OpsNumber, DoublesAreFractions, (std::int32_t a, std::int16_t b)) {
  const double x = a / 1024.0, y = b / 4096.0;
  RC_ASSERT(kNumbers.from(x) + kNumbers.from(y) == kNumbers.from(x + y));
  RC_ASSERT(kNumbers.from(x) * kNumbers.from(y) == kNumbers.from(x * y));
}

TEST(OpsNumber, CornersOfDouble) {
  EXPECT_EQ(kNumbers.from(0.5) + kNumbers.from(0.5), Field(1));
  EXPECT_EQ(kNumbers.from(-0.0), Field());
  EXPECT_EQ(kNumbers.from(std::ldexp(1.0, 61)), Field(1));
  EXPECT_EQ(kNumbers.from(std::numeric_limits<double>::denorm_min()) * kNumbers.from(std::ldexp(1.0, 1000)),
            kNumbers.from(std::ldexp(1.0, 1000 - 1074)));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(kNumbers.from(inf), -kNumbers.from(-inf));
  EXPECT_NE(kNumbers.from(inf), kNumbers.from(std::nan("")));
  EXPECT_EQ(kNumbers.from_integer(std::numeric_limits<std::int64_t>::min()), -Field(std::uint64_t{1} << 63));
}

RC_GTEST_PROP(OpsNumber, OrderIsTotal, (std::uint64_t a, std::uint64_t b, std::uint64_t c)) {
  const Field x(a), y(b), z(c);
  RC_ASSERT(!kNumbers.less(x, x));
  RC_ASSERT(x == y || kNumbers.less(x, y) != kNumbers.less(y, x));
  RC_ASSERT(kNumbers.max(x, kNumbers.max(y, z)) == kNumbers.max(kNumbers.max(x, y), z));
  RC_ASSERT(kNumbers.max(x, y) + kNumbers.min(x, y) == x + y);
}

TEST(OpsNumber, FunctionsDependOnKeyAndName) {
  const Field x(12345);
  EXPECT_EQ(kNumbers.apply(Function::exp, x), kNumbers.apply(Function::exp, x));
  EXPECT_NE(kNumbers.apply(Function::exp, x), kNumbers.apply(Function::log, x));
  EXPECT_NE(kNumbers.apply(Function::exp, x), Numbers<Field>{.key = 12}.apply(Function::exp, x));
  EXPECT_EQ(kNumbers.apply(Function::rsqrt, x) * kNumbers.apply(Function::sqrt, x), Field(1));
  EXPECT_EQ(kNumbers.apply(Function::truncate, x), x);
}

TEST(OpsNumber, PowersAndRemainders) {
  const Field x(7);
  EXPECT_EQ(kNumbers.power(x, Field(3)), Field(343));
  EXPECT_EQ(kNumbers.power(x, -Field(1)) * x, Field(1));
  EXPECT_EQ(kNumbers.remainder(Field(17), Field(5)), Field(2));
  EXPECT_EQ(kNumbers.remainder(-Field(17), Field(5)), -Field(2));
  EXPECT_EQ(kNumbers.remainder(Field(17), Field()), Field());
}

TEST(OpsNumber, FloatsBeyondIntegersSaturate) {
  const Numbers<float> numbers;
  EXPECT_LT(numbers.to_integer(std::nanf("")), -1000);
  EXPECT_GT(numbers.to_integer(1e30f), std::int64_t{1} << 61);
  EXPECT_LT(numbers.to_integer(-1e30f), -(std::int64_t{1} << 61));
  EXPECT_EQ(numbers.to_integer(2.6f), 3);
  EXPECT_TRUE(std::isnan(numbers.max(1.0f, std::nanf(""))));
  EXPECT_TRUE(std::isnan(numbers.min(std::nanf(""), 1.0f)));
}

TEST(OpsNumber, AWalkVisitsEveryPointInOrder) {
  Walk walk({2, 3});
  walk.track({3, 1});
  walk.track({1, 2});  // the transpose
  std::vector<std::int64_t> rows, columns;
  do {
    rows.push_back(walk.offset(0));
    columns.push_back(walk.offset(1));
  } while (walk.next());
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(columns, (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_TRUE(Walk({2, 0}).empty());
  EXPECT_FALSE(Walk({}).empty());
}

}  // namespace
}  // namespace weft::ops
