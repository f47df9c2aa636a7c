// Reductions, rows and optimizer steps compared with the operators they implement.
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "lanes_reference.h"
#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kLengths[] = {1, 2, 3, 4, 5, 7, 10, 16, 31, 32, 33, 63, 64, 67, 100, 256, 384, 1000};

Floats normal_floats(std::uint64_t seed, std::size_t n) {
  Floats x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(normal_at(seed, 0, i));
  return x;
}

template <class T>
void expect_near(const Floats& y, const std::vector<T>& expected, double relative, double absolute) {
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], relative * std::fabs(expected[i]) + absolute) << i << " of " << y.size();
}

// The summation order that lanes_loops.h specifies, as plain loops.
float sum_in_order(const float* x, std::size_t n) {
  std::array<float, 32> chains{};
  for (std::size_t i = 0; i < n; ++i) chains[i % 32] += x[i];
  for (std::size_t half = 16; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) chains[i] += chains[i + half];
  return chains[0];
}

TEST(LanesReductions, SumsInOneOrder) {
  const Floats x = normal_floats(1, 3000);
  for (std::size_t n = 0; n <= 200; ++n)
    for (std::size_t start = 0; start < 5; ++start)
      ASSERT_EQ(sum_lanes(x.data() + start, static_cast<std::int64_t>(n)), sum_in_order(x.data() + start, n))
          << n;
  EXPECT_EQ(sum_lanes(x.data(), 3000), sum_in_order(x.data(), 3000));
}

// As accurate as rounding the exact sum once, at any length; plain f32 accumulation would be off by
// 1e-4.
TEST(LanesReductions, LongSumsAreAccurate) {
  constexpr std::size_t kMany = std::size_t{1} << 22;
  Floats x(kMany);
  double exact = 0, squares = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    x[i] = static_cast<float>(uniform_at(3, 0, i));
    exact += static_cast<double>(x[i]);
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  const auto n = static_cast<std::int64_t>(kMany);
  EXPECT_NEAR(static_cast<double>(sum_lanes(x.data(), n)), exact, 2e-7 * exact);
  EXPECT_NEAR(static_cast<double>(dot_lanes(x.data(), x.data(), n)), squares, 2e-7 * squares);
}

TEST(LanesReductions, MaxAndMin) {
  EXPECT_EQ(max_lanes(nullptr, 0), -kInfinity);
  EXPECT_EQ(min_lanes(nullptr, 0), kInfinity);
  for (const std::size_t n : kLengths) {
    Floats x = normal_floats(n, n);
    EXPECT_EQ(max_lanes(x.data(), std::ssize(x)), *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(min_lanes(x.data(), std::ssize(x)), *std::min_element(x.begin(), x.end()));
    for (std::size_t at = 0; at < n; at += 1 + n / 17) {
      Floats holed = x;
      holed[at] = kNaN;
      EXPECT_TRUE(std::isnan(max_lanes(holed.data(), std::ssize(x)))) << at << " of " << n;
      EXPECT_TRUE(std::isnan(min_lanes(holed.data(), std::ssize(x)))) << at << " of " << n;
    }
  }
}

TEST(LanesReductions, DotAndAccumulate) {
  for (const std::size_t n : kLengths) {
    const Floats a = normal_floats(n, n), b = normal_floats(n + 1, n), c = normal_floats(n + 2, n);
    const auto count = static_cast<std::int64_t>(n);
    double dot = 0;
    for (std::size_t i = 0; i < n; ++i) dot += static_cast<double>(a[i]) * b[i];
    EXPECT_NEAR(dot_lanes(a.data(), b.data(), count), dot, 1e-6 * std::sqrt(static_cast<double>(n)));

    Floats sum = c, product = c;
    accumulate_lanes(a.data(), sum.data(), count);
    accumulate_product_lanes(a.data(), b.data(), product.data(), count);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(sum[i], c[i] + a[i]);
      EXPECT_NEAR(product[i], c[i] + static_cast<double>(a[i]) * b[i], 1e-6);
    }
  }
  EXPECT_EQ(dot_lanes(nullptr, nullptr, 0), 0);
}

TEST(LanesRows, Softmax) {
  for (const std::size_t n : kLengths) {
    Floats x = normal_floats(n, n);
    for (float& element : x) element *= 5;
    if (n > 4) x[n / 2] = x[n - 1] = -kInfinity;
    const auto expected = reference<double>({"softmax", {fmt::format("f32[n={}]", n)}, "{over=[n]}"}, {x})[0];
    Floats y(n);
    softmax_row(x.data(), y.data(), std::ssize(x));
    expect_near(y, expected, 2e-6, 0);
    EXPECT_EQ(y[n / 2] == 0, n > 4) << "a share of -inf";

    float max = 0, total = 0;
    const float of_row = log_sum_exp_row(x.data(), std::ssize(x), max);
    EXPECT_EQ(max, *std::max_element(x.begin(), x.end()));
    for (std::size_t i = 0; i < n; ++i) total += std::exp(x[i] - of_row);
    EXPECT_NEAR(total, 1, 1e-5);

    softmax_row(x.data(), x.data(), std::ssize(x));
    EXPECT_EQ(x, y) << "in place";
  }
}

TEST(LanesRows, SoftmaxAtTheCorners) {
  Floats none(37, -kInfinity), y(37, 7);
  softmax_row(none.data(), y.data(), 37);
  EXPECT_EQ(y, Floats(37, 0));
  float max = 0;
  EXPECT_EQ(log_sum_exp_row(none.data(), 37, max), -kInfinity);
  EXPECT_EQ(log_sum_exp_row(none.data(), 0, max), -kInfinity);

  Floats far(37, 3e38f);  // no overflow: the maximum is subtracted first
  softmax_row(far.data(), y.data(), 37);
  EXPECT_NEAR(y[5], 1.0 / 37, 1e-8);

  for (const float odd : {kNaN, kInfinity}) {  // as in the operator, one such element spoils its row
    Floats row(37, 1);
    row[36] = odd;
    softmax_row(row.data(), y.data(), 37);
    EXPECT_TRUE(std::isnan(y[0]) || y[0] == 0);
    EXPECT_TRUE(std::isnan(y[36]));
  }
  softmax_row(nullptr, nullptr, 0);
}

TEST(LanesRows, Norms) {
  using Row = void (*)(const float*, float*, std::int64_t, float, float&);
  for (const auto& [name, row] :
       {std::pair<const char*, Row>{"layer-norm", layer_norm_row}, {"rms-norm", rms_norm_row}}) {
    for (const std::size_t n : kLengths) {
      Floats x = normal_floats(n, n), y(n);
      for (float& element : x) element = 3 * element + 100;  // far from zero: squares alone would cancel
      const ops::Case c{name, {fmt::format("f32[n={}]", n)}, "{over=[n], epsilon=0.001}", 2};
      const auto expected = reference<double>(c, {x});
      float rstd = 0;
      row(x.data(), y.data(), std::ssize(x), 1e-3f, rstd);
      EXPECT_NEAR(rstd, expected[1][0], 1e-4 * expected[1][0]) << name << n;
      expect_near(y, expected[0], 1e-5, n == 1 ? 1e-6 : 2e-5);

      float again = 0;
      row(x.data(), x.data(), std::ssize(x), 1e-3f, again);
      EXPECT_EQ(x, y) << "in place";
      EXPECT_EQ(rstd, again);
    }
  }
}

struct Weights {
  explicit Weights(std::size_t n)
      : weight(normal_floats(1, n)),
        gradient(normal_floats(2, n)),
        first(normal_floats(3, n)),
        second(normal_floats(4, n)) {
    for (float& element : second) element = std::fabs(element);
    if (n > 2) gradient[2] = second[2] = first[2] = 0;
  }
  Floats weight, gradient, first, second;
};

TEST(LanesOptimizers, SgdAndMomentum) {
  for (const std::size_t n : kLengths) {
    const std::string type = fmt::format("f32[n={}]", n);
    const auto count = static_cast<std::int64_t>(n);
    Weights at(n);
    Floats next(n);
    sgd_lanes(count, 0.1f, at.weight.data(), at.gradient.data(), next.data());
    expect_near(next, reference<double>({"sgd", {type, type}, "{lr=0.1}"}, {at.weight, at.gradient})[0], 1e-6,
                1e-7);

    const auto expected = reference<double>({"momentum", {type, type, type}, "{lr=0.1, momentum=0.8}", 2},
                                            {at.weight, at.gradient, at.first});
    momentum_lanes(count, {.lr = 0.1f, .momentum = 0.8f}, at.weight.data(), at.gradient.data(),
                   at.first.data(), at.weight.data(), at.first.data());
    expect_near(at.weight, expected[0], 1e-6, 2e-7);
    expect_near(at.first, expected[1], 1e-6, 2e-7);
  }
}

TEST(LanesOptimizers, AdamAndAdamw) {
  for (const std::size_t n : kLengths) {
    for (const int done : {0, 1, 10, 5000}) {
      for (const bool decays : {false, true}) {
        const std::string type = fmt::format("f32[n={}]", n);
        const ops::Case c{decays ? "adamw" : "adam",
                          {type, type, type, type, "i64[]"},
                          decays ? "{lr=0.01, decay=0.2}" : "{lr=0.01}",
                          3};
        Weights at(n);
        const Floats before = at.weight;
        const auto expected =
            reference<double>(c, {at.weight, at.gradient, at.first, at.second, {static_cast<float>(done)}});
        const AdamStep step = adam_step(0.01, 0.9, 0.999, 1e-8, done, decays ? 0.2 : 0);
        Floats weight(n), first(n), second(n);
        adam_lanes(std::ssize(before), step, at.weight.data(), at.gradient.data(), at.first.data(),
                   at.second.data(), weight.data(), first.data(), second.data());
        // The reference in double uses the float values of the betas: 1 - 0.999 differs by 5e-5 of
        // itself.
        expect_near(weight, expected[0], 1e-6, 1e-5);
        expect_near(first, expected[1], 1e-6, 1e-6);
        expect_near(second, expected[2], 1e-6, 1e-6);

        adam_lanes(std::ssize(before), step, at.weight.data(), at.gradient.data(), at.first.data(),
                   at.second.data(), at.weight.data(), at.first.data(), at.second.data());
        EXPECT_EQ(at.weight, weight) << "in place";
        EXPECT_EQ(at.first, first);
        EXPECT_EQ(at.second, second);
      }
    }
  }
}

// At the first step from zero, the bias corrections cancel the betas: the weight moves by lr for
// any gradient.
TEST(LanesOptimizers, TheFirstStepOfAdamIsTheLearningRate) {
  const float w[] = {1, 1}, g[] = {0.001f, -40}, zero[] = {0, 0};
  float weight[2], first[2], second[2];
  adam_lanes(2, adam_step(0.25, 0.9, 0.999, 1e-8, 0), w, g, zero, zero, weight, first, second);
  EXPECT_NEAR(weight[0], 0.75, 1e-5);
  EXPECT_NEAR(weight[1], 1.25, 1e-5);
}

}  // namespace
}  // namespace weft::device::cpu
