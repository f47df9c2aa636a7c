// Pooling and its gradients compared with ops/, with windows that overlap, leave gaps or reach into
// padding.
#include <fmt/format.h>

#include "kernels_case.h"
#include "weft/device/cpu/pooling.h"

namespace weft::device::cpu {
namespace {

// The number of windows that fit.
Pooling sized(Pooling pool) {
  pool.padding_width = pool.padding;
  pool.out_height = (pool.height + 2 * pool.padding - pool.size) / pool.stride + 1;
  pool.out_width = (pool.width + 2 * pool.padding - pool.size) / pool.stride + 1;
  return pool;
}

void expect_agreement(std::int64_t planes, Pooling pool, Random& random) {
  const std::string of_x = fmt::format("f32[c={},h={},w={}]", planes, pool.height, pool.width),
                    of_y = fmt::format("f32[c={},h={},w={}]", planes, pool.out_height, pool.out_width),
                    window = fmt::format("size={}, stride={}, padding={}, padding_w={}, high={}, wide={}",
                                         pool.size, pool.stride, pool.padding, pool.padding_width,
                                         pool.out_height, pool.out_width);
  SCOPED_TRACE(of_x + " " + window);
  const std::int64_t x_size = planes * pool.height * pool.width,
                     y_size = planes * pool.out_height * pool.out_width;
  auto x = random_floats(x_size, random);
  for (float& element : x) element = std::round(element * 4);  // makes ties likely
  const auto dy = random_floats(y_size, random);

  const auto expect = [&](std::int64_t size, const std::vector<double>& expected, auto kernel) {
    auto whole = unwritten(size), parts = whole;
    kernel(0, planes, whole.data());
    EXPECT_TRUE(near(whole, expected));
    in_pieces(planes, random,
              [&](std::int64_t begin, std::int64_t end) { kernel(begin, end, parts.data()); });
    EXPECT_TRUE(same_bits(whole, parts));
  };
  using Index = std::int64_t;
  // Exactly the requested number of bytes: the sanitizer detects one too many.
  std::vector<float> scratch(scratch_bytes(pool) / sizeof(float));
  expect(y_size, reference("max-pool", {{of_x, x}}, "{" + window + "}")[0],
         [&](Index begin, Index end, float* y) { max_pool(pool, begin, end, x.data(), y, scratch.data()); });
  expect(y_size, reference("avg-pool", {{of_x, x}}, "{" + window + "}")[0],
         [&](Index begin, Index end, float* y) { avg_pool(pool, begin, end, x.data(), y, scratch.data()); });
  expect(x_size, reference("max-pool-gradient", {{of_y, dy}, {of_x, x}}, "{" + window + "}")[0],
         [&](Index begin, Index end, float* dx) {
           max_pool_gradient(pool, begin, end, dy.data(), x.data(), dx, scratch.data());
         });
  expect(x_size,
         reference("avg-pool-gradient", {{of_y, dy}}, fmt::format("{{{}, type={}}}", window, of_x))[0],
         [&](Index begin, Index end, float* dx) { avg_pool_gradient(pool, begin, end, dy.data(), dx); });
}

TEST(KernelsPooling, AgreesOnSquaresOfTwo) {
  Random random(7);
  for (const auto& [height, width] : {std::pair{2, 2}, {8, 8}, {5, 4}, {4, 7}, {3, 3}, {10, 38}})
    expect_agreement(3, sized({.height = height, .width = width, .size = 2, .stride = 2}), random);
}

// Any vector width, with and without a remainder; a window too large to slide.
TEST(KernelsPooling, AgreesOnPlanesOfModels) {
  Random random(9);
  expect_agreement(2, sized({.height = 56, .width = 57, .size = 3, .stride = 2, .padding = 1}), random);
  expect_agreement(2, sized({.height = 14, .width = 14, .size = 3, .stride = 1, .padding = 1}), random);
  expect_agreement(2, sized({.height = 66, .width = 70, .size = 2, .stride = 2}), random);
  expect_agreement(2, sized({.height = 12, .width = 30, .size = 9, .stride = 3}), random);
}

// Padding is never the maximum, and NaN always is.
TEST(KernelsPooling, IgnoresPadding) {
  const Pooling pool = sized({.height = 3, .width = 3, .size = 3, .stride = 1, .padding = 1});
  std::vector<float> x(18, -INFINITY), y(18), scratch(scratch_bytes(pool) / sizeof(float));
  x[9 + 4] = NAN;
  max_pool(pool, 0, 2, x.data(), y.data(), scratch.data());
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(y[i], -INFINITY);
  for (std::size_t i = 9; i < 18; ++i) EXPECT_TRUE(std::isnan(y[i]));
}

TEST(KernelsPooling, AgreesOnRandomWindows) {
  Random random(8);
  for (int i = 0; i < 60; ++i) {
    Pooling pool{.size = random.between(1, 4), .stride = random.between(1, 4)};
    pool.padding = random.between(0, pool.size / 2);
    pool.height = random.between(pool.size, 11);
    pool.width = random.between(pool.size, 11);
    expect_agreement(random.between(1, 4), sized(pool), random);
  }
}

// As on a rank that computes a slice of the windows: more padding on one side than on the other.
TEST(KernelsPooling, AgreesOnSlicesOfWindows) {
  Random random(9);
  for (int i = 0; i < 40; ++i) {
    Pooling pool{.height = random.between(1, 9),
                 .width = random.between(1, 9),
                 .size = random.between(1, 4),
                 .stride = random.between(1, 3)};
    pool.padding = random.between(0, pool.size - 1);
    pool.padding_width = random.between(0, pool.size - 1);
    pool.out_height = random.between(1, (pool.height - 1 + pool.padding) / pool.stride + 1);
    pool.out_width = random.between(1, (pool.width - 1 + pool.padding_width) / pool.stride + 1);
    expect_agreement(random.between(1, 4), pool, random);
  }
}

TEST(KernelsPooling, NaNIsTheMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scratch(1024);
  for (std::size_t place = 0; place < 4; ++place) {
    std::vector<float> x = {1, 2, 3, 4};
    x[place] = nan;
    float y = 0;
    max_pool({.height = 2, .width = 2, .out_height = 1, .out_width = 1, .size = 2, .stride = 2}, 0, 1,
             x.data(), &y, scratch.data());
    EXPECT_TRUE(std::isnan(y));
    max_pool({.height = 2, .width = 2, .out_height = 1, .out_width = 1, .size = 2, .stride = 1}, 0, 1,
             x.data(), &y, scratch.data());
    EXPECT_TRUE(std::isnan(y));
  }
}

}  // namespace
}  // namespace weft::device::cpu
