// Distance of exp, log and others from the true values, for which the double versions stand in.
#include <bit>
#include <limits>

#include <gtest/gtest.h>

#include "lanes_reference.h"
#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kSamples = 200'000;

Floats run(Lane which, const Floats& x) {
  Floats y(x.size());
  const LaneOperand operand{x.data()};
  run_lane(which, std::ssize(x), &operand, y.data());
  return y;
}

// Every exponent is equally likely: floats with random bits, between the bits of low and high.
Floats random_by_bits(std::size_t n, float low, float high, bool both_signs) {
  Random random(std::bit_cast<std::uint32_t>(high));
  Floats x(n);
  for (float& element : x) {
    element = std::bit_cast<float>(static_cast<std::uint32_t>(
        random.between(std::bit_cast<std::uint32_t>(low), std::bit_cast<std::uint32_t>(high))));
    if (both_signs && random.below(2) == 0) element = -element;
  }
  return x;
}

// The largest distance, in ulps, where the true value is a normal float.
template <class True>
double worst_ulp(Lane which, const Floats& x, True truth) {
  const Floats y = run(which, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = truth(static_cast<double>(x[i]));
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
    worst = std::max(worst, std::fabs(y[i] - expected) / ulp);
    EXPECT_EQ(std::isnan(y[i]), std::isnan(expected)) << x[i];
  }
  return worst;
}

template <class True>
double worst_absolute(Lane which, const Floats& x, True truth) {
  const Floats y = run(which, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::fabs(y[i] - truth(static_cast<double>(x[i]))));
  return worst;
}

// Prints the distance found, so that the bounds of lanes_math.h can be checked.
void expect_within(const char* what, double found, double bound) {
  ::testing::Test::RecordProperty(what, fmt::format("{:.3g}", found));
  EXPECT_LE(found, bound) << what;
}

TEST(LanesMath, Exp) {
  Random random(1);
  const auto truth = [](double x) { return std::exp(x); };
  expect_within("exp", worst_ulp(lane("exp"), random_floats(random, kSamples, -87.33, 88.72), truth), 2);
  expect_within("exp near 0", worst_ulp(lane("exp"), random_by_bits(kSamples, 0x1p-126f, 1, true), truth), 2);
  EXPECT_EQ(run(lane("exp"), {0, -0.0f, 88.8f, 1e30f, kInfinity, -104, -1e30f, -kInfinity}),
            (Floats{1, 1, kInfinity, kInfinity, kInfinity, 0, 0, 0}));
}

// The last finite results before infinity and before zero are right, with no outliers between.
TEST(LanesMath, ExpAtItsEnds) {
  const float most = 0x1.62e42ep6f, least = -0x1.5d589ep6f;
  EXPECT_NEAR(run(lane("exp"), {most})[0] / std::exp(static_cast<double>(most)), 1, 2e-7);
  EXPECT_EQ(run(lane("exp"), {std::nextafter(most, kInfinity)})[0], kInfinity);
  EXPECT_NEAR(run(lane("exp"), {least})[0] / std::exp(static_cast<double>(least)), 1, 2e-7);
  EXPECT_EQ(run(lane("exp"), {std::nextafter(least, -kInfinity)})[0], 0);
}

TEST(LanesMath, Log) {
  Random random(2);
  const auto truth = [](double x) { return std::log(x); };
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  expect_within("log", worst_ulp(lane("log"), random_by_bits(kSamples, least, most, false), truth), 2);
  expect_within("log near 1", worst_ulp(lane("log"), random_floats(random, kSamples, 0.5, 2), truth), 2);
  EXPECT_EQ(run(lane("log"), {1, 0, -0.0f, kInfinity}), (Floats{0, -kInfinity, -kInfinity, kInfinity}));
  for (const float y : run(lane("log"), {-1, -1e-40f, -kInfinity, kNaN})) EXPECT_TRUE(std::isnan(y));
}

TEST(LanesMath, Tanh) {
  Random random(3);
  const auto truth = [](double x) { return std::tanh(x); };
  expect_within("tanh", worst_ulp(lane("tanh"), random_floats(random, kSamples, -10, 10), truth), 3);
  expect_within("tanh near 0", worst_ulp(lane("tanh"), random_by_bits(kSamples, 0x1p-126f, 1, true), truth),
                3);
  EXPECT_EQ(run(lane("tanh"), {0, 9.1f, -50, kInfinity, -kInfinity}), (Floats{0, 1, -1, 1, -1}));
}

TEST(LanesMath, Sigmoid) {
  Random random(4);
  const auto truth = [](double x) { return 1 / (1 + std::exp(-x)); };
  expect_within("sigmoid", worst_ulp(lane("sigmoid"), random_floats(random, kSamples, -87, 87), truth), 3);
  expect_within("sigmoid near 0", worst_ulp(lane("sigmoid"), random_floats(random, kSamples, -8, 8), truth),
                3);
  EXPECT_EQ(run(lane("sigmoid"), {0, 100, -100, kInfinity, -kInfinity}), (Floats{0.5f, 1, 0, 1, 0}));
}

TEST(LanesMath, Erf) {
  Random random(5);
  const auto truth = [](double x) { return std::erf(x); };
  expect_within("erf", worst_ulp(lane("erf"), random_floats(random, kSamples, -4.5, 4.5), truth), 3);
  expect_within("erf near 0", worst_ulp(lane("erf"), random_by_bits(kSamples, 0x1p-126f, 1, true), truth), 3);
  EXPECT_EQ(run(lane("erf"), {0, 4, -50, 1e30f, kInfinity, -kInfinity}), (Floats{0, 1, -1, 1, 1, -1}));
}

TEST(LanesMath, SinAndCos) {
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  for (const double reach : {1.0, 10.0, 1e4}) {
    Random random(6);
    const Floats x = random_floats(random, kSamples, -reach, reach);
    expect_within("sin", worst_absolute(lane("sin"), x, sine), 2e-7);
    expect_within("cos", worst_absolute(lane("cos"), x, cosine), 2e-7);
  }
  const Floats far = random_by_bits(kSamples / 10, 1, std::numeric_limits<float>::max(), true);
  expect_within("sin far", worst_absolute(lane("sin"), far, sine), 2e-7);
  expect_within("cos far", worst_absolute(lane("cos"), far, cosine), 2e-7);
  expect_within("sin near 0", worst_ulp(lane("sin"), random_by_bits(kSamples, 0x1p-126f, 0.7f, true), sine),
                2);
  for (const Lane which : {lane("sin"), lane("cos")})
    for (const float y : run(which, {kInfinity, -kInfinity, kNaN})) EXPECT_TRUE(std::isnan(y));
}

// NaN with any payload, sign and position stays NaN.
TEST(LanesMath, NaNStays) {
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    if (row.arity != 1 || row.takes == ops::Elements::boolean) continue;
    Floats x =
        random_by_bits(1000, std::bit_cast<float>(0x7fc00000u), std::bit_cast<float>(0x7fffffffu), true);
    for (const float y : run(lane(row.name), x)) ASSERT_TRUE(std::isnan(y)) << row.name;
  }
}

}  // namespace
}  // namespace weft::device::cpu
