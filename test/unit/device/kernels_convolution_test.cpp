// Convolutions as matrix products compared with the plain loops of ops/.
#include <fmt/format.h>

#include "kernels_case.h"
#include "weft/device/cpu/convolution.h"

namespace weft::device::cpu {
namespace {

Convolution sized(Convolution conv) {
  const auto places = [&](std::int64_t size, std::int64_t window, std::int64_t padding) {
    return (size + 2 * padding - window) / conv.stride + 1;
  };
  conv.out_height = places(conv.height, conv.kernel_height, conv.padding_height);
  conv.out_width = places(conv.width, conv.kernel_width, conv.padding_width);
  return conv;
}

struct Shaped {
  Convolution conv;
  std::string x, w, y, attributes;
  std::int64_t x_size, w_size, y_size;

  explicit Shaped(const Convolution& c)
      : conv(c),
        x(fmt::format("f32[b={},c={},h={},w={}]", c.batch, c.in, c.height, c.width)),
        w(fmt::format("f32[o={},i={},r={},q={}]", c.out, c.in / c.groups, c.kernel_height, c.kernel_width)),
        y(fmt::format("f32[b={},o={},h={},w={}]", c.batch, c.out, c.out_height, c.out_width)),
        attributes(fmt::format("stride={}, padding={}, groups={}, padding_w={}", c.stride, c.padding_height,
                               c.groups, c.padding_width)),
        x_size(c.batch * c.in * c.height * c.width),
        w_size(c.out * (c.in / c.groups) * c.kernel_height * c.kernel_width),
        y_size(c.batch * c.out * c.out_height * c.out_width) {
    const Convolution fitting = sized(c);
    const bool fits =
        c.kernel_height <= c.height + 2 * c.padding_height && c.kernel_width <= c.width + 2 * c.padding_width;
    if (!fits || c.out_height != fitting.out_height || c.out_width != fitting.out_width)
      attributes += fmt::format(", high={}, wide={}", c.out_height, c.out_width);
  }
};

// Exactly the requested number of bytes: the sanitizer detects one too many.
class Scratch {
 public:
  explicit Scratch(const Convolution& conv) : floats_(scratch_bytes(conv) / sizeof(float)) {}
  void* data() { return floats_.data(); }

 private:
  std::vector<float> floats_;
};

void expect_agreement(const Convolution& conv, Random& random) {
  const Shaped shaped(conv);
  SCOPED_TRACE(shaped.x + " " + shaped.w + " " + shaped.attributes);
  const auto x = random_floats(shaped.x_size, random), w = random_floats(shaped.w_size, random),
             dy = random_floats(shaped.y_size, random);
  Scratch scratch(conv);

  auto y = unwritten(shaped.y_size), in_parts = y;
  convolve(conv, 0, conv.batch, x.data(), w.data(), y.data(), scratch.data());
  EXPECT_TRUE(near(y, reference("conv2d", {{shaped.x, x}, {shaped.w, w}}, "{" + shaped.attributes + "}")[0]));
  in_pieces(conv.batch, random, [&](std::int64_t begin, std::int64_t end) {
    convolve(conv, begin, end, x.data(), w.data(), in_parts.data(), scratch.data());
  });
  EXPECT_TRUE(same_bits(y, in_parts));

  auto dx = unwritten(shaped.x_size);
  in_parts = dx;
  convolve_input_gradient(conv, 0, conv.batch, dy.data(), w.data(), dx.data(), scratch.data());
  EXPECT_TRUE(near(dx, reference("conv2d-input-gradient", {{shaped.y, dy}, {shaped.w, w}},
                                 fmt::format("{{{}, type={}}}", shaped.attributes, shaped.x))[0]));
  in_pieces(conv.batch, random, [&](std::int64_t begin, std::int64_t end) {
    convolve_input_gradient(conv, begin, end, dy.data(), w.data(), in_parts.data(), scratch.data());
  });
  EXPECT_TRUE(same_bits(dx, in_parts));

  auto dw = unwritten(shaped.w_size), by_channels = dw;
  convolve_weight_gradient(conv, 0, conv.in, dy.data(), x.data(), dw.data(), scratch.data());
  EXPECT_TRUE(near(dw,
                   reference("conv2d-weight-gradient", {{shaped.y, dy}, {shaped.x, x}},
                             fmt::format("{{{}, type={}}}", shaped.attributes, shaped.w))[0],
                   1e-4));
  in_pieces(conv.in, random, [&](std::int64_t begin, std::int64_t end) {
    convolve_weight_gradient(conv, begin, end, dy.data(), x.data(), by_channels.data(), scratch.data());
  });
  EXPECT_TRUE(same_bits(dw, by_channels));
}

TEST(KernelsConvolution, AgreesOnTheShapesOfModels) {
  Random random(5);
  const Convolution shapes[] = {
      {.batch = 13,
       .in = 1,
       .out = 16,
       .height = 8,
       .width = 8,
       .kernel_height = 3,
       .kernel_width = 3,
       .padding_height = 1,
       .padding_width = 1},
      {.batch = 27,
       .in = 4,
       .out = 9,
       .height = 4,
       .width = 4,
       .kernel_height = 3,
       .kernel_width = 3,
       .padding_height = 1,
       .padding_width = 1},
      {.batch = 2,
       .in = 3,
       .out = 8,
       .height = 32,
       .width = 32,
       .kernel_height = 7,
       .kernel_width = 7,
       .padding_height = 3,
       .padding_width = 3,
       .stride = 2},
      {.batch = 2, .in = 5, .out = 7, .height = 28, .width = 28, .kernel_height = 1, .kernel_width = 1},
      {.batch = 3, .in = 5, .out = 7, .height = 9, .width = 6, .kernel_height = 1, .kernel_width = 1},
      {.batch = 2,
       .in = 5,
       .out = 7,
       .height = 24,
       .width = 24,
       .kernel_height = 1,
       .kernel_width = 1,
       .stride = 2},
      {.batch = 2,
       .in = 6,
       .out = 6,
       .height = 21,
       .width = 22,
       .kernel_height = 3,
       .kernel_width = 3,
       .padding_height = 1,
       .padding_width = 1,
       .groups = 6},
      {.batch = 1,
       .in = 4,
       .out = 5,
       .height = 17,
       .width = 17,
       .kernel_height = 1,
       .kernel_width = 7,
       .padding_width = 3},
      {.batch = 3,
       .in = 4,
       .out = 5,
       .height = 17,
       .width = 17,
       .kernel_height = 7,
       .kernel_width = 1,
       .padding_height = 3},
      {.batch = 1, .in = 1, .out = 1, .height = 1, .width = 1, .kernel_height = 1, .kernel_width = 1},
      {.batch = 2, .in = 1, .out = 2, .height = 3, .width = 500, .kernel_height = 2, .kernel_width = 5}};
  for (const Convolution& shape : shapes) expect_agreement(sized(shape), random);
}

// Groups of few channels slide over planes, those of many channels use products. Also batches of
// several images.
TEST(KernelsConvolution, AgreesOnGroupsOfFewAndOfManyChannels) {
  Random random(8);
  const auto square = [](std::int64_t in, std::int64_t out, std::int64_t groups, std::int64_t size,
                         std::int64_t kernel, std::int64_t stride) {
    return sized({.batch = 3,
                  .in = in,
                  .out = out,
                  .height = size,
                  .width = size,
                  .kernel_height = kernel,
                  .kernel_width = kernel,
                  .padding_height = kernel / 2,
                  .padding_width = kernel / 2,
                  .stride = stride,
                  .groups = groups});
  };
  for (const Convolution& conv :
       {square(5, 5, 5, 28, 3, 1), square(5, 5, 5, 28, 3, 2), square(4, 8, 4, 7, 5, 1),
        square(3, 3, 3, 40, 7, 3), square(12, 18, 3, 14, 3, 1), square(36, 40, 1, 9, 3, 2),
        square(65, 66, 1, 6, 3, 1), square(65, 66, 1, 6, 3, 2), square(2, 3, 1, 20, 9, 1)})
    expect_agreement(conv, random);
}

TEST(KernelsConvolution, AgreesOnRandomShapes) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t groups = random.between(1, 3);
    Convolution conv{.batch = random.between(1, 20),
                     .in = groups * random.between(1, 3),
                     .out = groups * random.between(1, 5),
                     .height = random.between(1, 12),
                     .width = random.between(1, 12),
                     .padding_height = random.between(0, 2),
                     .padding_width = random.between(0, 2),
                     .stride = random.between(1, 3),
                     .groups = groups};
    conv.kernel_height = random.between(1, std::min<std::int64_t>(5, conv.height + 2 * conv.padding_height));
    conv.kernel_width = random.between(1, std::min<std::int64_t>(5, conv.width + 2 * conv.padding_width));
    expect_agreement(sized(conv), random);
  }
}

// As on a rank that computes a slice of the windows: more padding on one side than on the other.
TEST(KernelsConvolution, AgreesOnSlicesOfWindows) {
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    Convolution conv{.batch = random.between(1, 4),
                     .in = random.between(1, 3),
                     .out = random.between(1, 5),
                     .height = random.between(1, 9),
                     .width = random.between(1, 9),
                     .kernel_height = random.between(1, 5),
                     .kernel_width = random.between(1, 5),
                     .stride = random.between(1, 3)};
    conv.padding_height = random.between(0, conv.kernel_height - 1);
    conv.padding_width = random.between(0, conv.kernel_width - 1);
    conv.out_height = random.between(1, (conv.height - 1 + conv.padding_height) / conv.stride + 1);
    conv.out_width = random.between(1, (conv.width - 1 + conv.padding_width) / conv.stride + 1);
    expect_agreement(conv, random);
  }
}

}  // namespace
}  // namespace weft::device::cpu
