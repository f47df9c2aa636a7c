// Every lane compared with the operator it implements, at every length, in place, and with scalars.
#include <bit>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

#include "lanes_reference.h"
#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// How a lane is checked: bitwise against the operator in float, or within this tolerance in double.
struct Judged {
  std::string_view op;
  double relative = 0, absolute = 0;  // both 0: bitwise
};

// gelu and silu are sums that cancel, so they are accurate relative to their terms, not to
// themselves.
constexpr double kUlp = 0x1p-23;
constexpr Judged kJudged[] = {
    {"pow", kUlp},
    {"exp", 2 * kUlp},
    {"log", 2 * kUlp},
    {"sin", 0, 2e-7},
    {"cos", 0, 2e-7},
    {"tanh", 3 * kUlp},
    {"erf", 3 * kUlp},
    {"sigmoid", 3 * kUlp},
    {"gelu", 8 * kUlp, 5e-7},
    {"gelu-tanh", 16 * kUlp, 1e-7},
    {"silu", 4 * kUlp},
};

// Arithmetic is exact. Costlier functions that are not listed are composed of inexact ones.
Judged judged(const ops::Pointwise& row) {
  for (const Judged& listed : kJudged)
    if (listed.op == row.name) return listed;
  return row.flops <= 3 ? Judged{row.name} : Judged{row.name, 16 * kUlp, 2e-6};
}

bool is_boolean(const ops::Pointwise& row, std::size_t operand) {
  return row.takes == ops::Elements::boolean || (row.name == "select" && operand == 0);
}

ops::Case case_of(const ops::Pointwise& row, std::size_t n) {
  ops::Case c{std::string(row.name), {}};
  for (std::size_t i = 0; i < row.arity; ++i)
    c.operands.push_back(fmt::format("{}[n={}]", is_boolean(row, i) ? "bool" : "f32", n));
  return c;
}

Floats run(Lane which, const std::vector<Floats>& operands) {
  std::vector<LaneOperand> x;
  for (const Floats& operand : operands) x.push_back({operand.data()});
  Floats y(operands[0].size());
  run_lane(which, std::ssize(y), x.data(), y.data());
  return y;
}

// All kinds of numbers: mostly ordinary ones, some equal to each other, some integers.
std::vector<Floats> ordinary_operands(const ops::Pointwise& row, std::size_t n) {
  Random random(static_cast<std::uint64_t>(lane(row.name)) + 7);
  std::vector<Floats> operands;
  for (std::size_t i = 0; i < row.arity; ++i) {
    Floats x = random_floats(random, n, -12, 12);
    for (float& element : x) {
      if (is_boolean(row, i)) element = element > 0;
      if (random.below(4) == 0) element = std::round(element);
    }
    operands.push_back(std::move(x));
  }
  return operands;
}

void expect_agreement(const ops::Pointwise& row, const std::vector<Floats>& operands) {
  const ops::Case c = case_of(row, operands[0].size());
  const Floats y = run(lane(row.name), operands);
  const Judged by = judged(row);
  const bool exact = by.relative == 0 && by.absolute == 0;
  const std::vector<float> narrow = reference<float>(c, operands)[0];
  const std::vector<double> wide = reference<double>(c, operands)[0];
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double expected = exact ? narrow[i] : wide[i];
    const double error = std::fabs(y[i] - expected);
    const bool good = same(y[i], narrow[i]) ||  // where the operator overflows in float, the lane may too
                      (!exact && error <= by.relative * std::fabs(expected) + by.absolute);
    ASSERT_TRUE(good) << row.name << " of " << operands[0][i] << ", " << operands.back()[i] << " gives "
                      << y[i] << ", the operator " << expected;
  }
}

TEST(Lanes, AgreeWithTheOperators) {
  for (const ops::Pointwise& row : ops::pointwise_rows()) expect_agreement(row, ordinary_operands(row, 4001));
}

// Every pair of corner cases of float.
TEST(Lanes, AgreeAtTheCorners) {
  const Floats corners = {0.0f,      -0.0f,      1,    -1,        2,          -3,         0.5f,
                          kInfinity, -kInfinity, kNaN, 0x1p-126f, 0x1.8p127f, -0x1.8p127f};
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    if (is_boolean(row, 0)) continue;
    Floats a, b;
    for (const float x : corners) {
      for (const float y : corners) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    expect_agreement(row, row.arity == 1 ? std::vector<Floats>{a} : std::vector<Floats>{a, b});
  }
}

TEST(Lanes, SelectReturnsTheChosenOperand) {
  const Floats which = {1, 0, 1, 0, kNaN}, yes = {1, kInfinity, 3, kNaN, 5}, no = {kNaN, 2, kInfinity, 4, 6};
  EXPECT_EQ(run(lane("select"), {which, yes, no}), (Floats{1, 2, 3, 4, 5}));
}

TEST(Lanes, SquareIsAProduct) {
  const Floats x = ordinary_operands(ops::pointwise_rows()[static_cast<std::size_t>(lane("exp"))], 100)[0];
  const float two = 2;
  const LaneOperand operands[] = {{x.data()}, {&two, true}};
  Floats y(x.size());
  run_lane(Lane::pow, std::ssize(y), operands, y.data());
  EXPECT_EQ(y, run(Lane::mul, {x, x}));
}

// One exponent for all elements, with and without a special case, at corner cases and between.
TEST(Lanes, RaisesToOneExponent) {
  Floats x = {0.0f,      -0.0f,      1,    -1,        2,          -3,          0.5f,
              kInfinity, -kInfinity, kNaN, 0x1p-126f, 0x1.8p127f, -0x1.8p127f, 0x1p-140f};
  Random random(5);
  for (int i = 0; i < 2000; ++i)
    x.push_back(static_cast<float>(std::exp2(random.uniform() * 40 - 20)) * (i % 5 == 0 ? -1.0f : 1.0f));
  for (const float exponent : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 0.5f, 1.5f, -0.5f, -1.0f, -2.0f, 5.0f, 0.3f,
                               -7.25f, 100.0f, kInfinity, kNaN}) {
    const LaneOperand operands[] = {{x.data()}, {&exponent, true}};
    Floats y(x.size());
    run_lane(Lane::pow, std::ssize(y), operands, y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float narrow = std::pow(x[i], exponent);
      const double wide = std::pow(static_cast<double>(x[i]), static_cast<double>(exponent));
      // Two intermediate roundings, and results below the normal range may become 0.
      const bool good = same(y[i], narrow) || std::fabs(y[i] - wide) <= 2 * kUlp * std::fabs(wide) ||
                        (std::fabs(wide) < 0x1p-126 && std::fabs(y[i]) <= 0x1p-126f);
      ASSERT_TRUE(good) << x[i] << " to the power of " << exponent << " gives " << y[i] << ", expected "
                        << wide;
    }
  }
}

std::vector<std::uint32_t> bits(const Floats& x) {
  std::vector<std::uint32_t> words;
  for (const float element : x) words.push_back(std::bit_cast<std::uint32_t>(element));
  return words;
}

// A lane does not depend on its position or its block's length, writes nothing beyond n, and may
// write to an operand.
TEST(Lanes, WorksAtEveryLengthPositionAndAlias) {
  constexpr std::size_t kMost = 67;
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    const std::size_t arity = row.arity;
    const Lane which = lane(row.name);
    const std::vector<Floats> all = ordinary_operands(row, kMost + 3);
    const std::vector<std::uint32_t> whole = bits(run(which, all));
    for (std::size_t n = 0; n <= kMost; ++n) {
      const std::size_t start = n % 4;
      const std::vector<std::uint32_t> expected(whole.begin() + start, whole.begin() + start + n);
      for (std::size_t alias = 0; alias <= arity; ++alias) {
        std::vector<Floats> operands = all;
        operands.emplace_back(kMost + 4, -77.0f);  // a separate result
        std::vector<LaneOperand> x;
        for (std::size_t i = 0; i < arity; ++i) x.push_back({operands[i].data() + start});
        const Floats before = operands[alias];
        run_lane(which, static_cast<std::int64_t>(n), x.data(), operands[alias].data() + start);
        Floats& y = operands[alias];
        ASSERT_EQ(bits({y.begin() + start, y.begin() + start + n}), expected)
            << row.name << " " << n << " " << alias;
        std::copy_n(before.begin() + start, n, y.begin() + start);
        ASSERT_EQ(bits(y), bits(before)) << row.name << " wrote beyond " << n;
      }
    }
  }
}

TEST(Lanes, ScalarsServeAllLanes) {
  constexpr std::size_t kCount = 53;
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    const std::size_t arity = row.arity;
    const Lane which = lane(row.name);
    for (unsigned scalars = 1; scalars < 1u << arity; ++scalars) {
      std::vector<Floats> operands = ordinary_operands(row, kCount);
      std::vector<LaneOperand> x;
      for (std::size_t i = 0; i < arity; ++i) {
        const bool scalar = (scalars >> i & 1) != 0;
        if (scalar) operands[i].assign(kCount, operands[i][3]);
        x.push_back({operands[i].data(), scalar});
      }
      Floats y(kCount);
      run_lane(which, kCount, x.data(), y.data());
      EXPECT_EQ(bits(y), bits(run(which, operands))) << row.name << " " << scalars;
    }
  }
}

}  // namespace
}  // namespace weft::device::cpu
