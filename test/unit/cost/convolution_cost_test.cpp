// Estimates for convolutions compared with times measured on an H200, and their dependence on
// shapes.
#include "weft/predict/cost/convolution_cost.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {
namespace {

cluster::Device h200() {
  cluster::Device device{.name = "h200"};
  const auto state = [&](cluster::Precision precision, double rate) {
    device.flops_per_second[static_cast<std::size_t>(precision)] = rate;
  };
  state(cluster::Precision::f32, 51.4e12);
  state(cluster::Precision::bf16, 773e12);
  device.kernels[static_cast<std::size_t>(cluster::KernelKind::convolution)] = 396e12;
  device.kernels[static_cast<std::size_t>(cluster::KernelKind::convolution_gradient)] = 362e12;
  device.memory_bytes_per_second = 4.22e12;
  device.memory_bytes = 141e9;
  device.launch_seconds = 4e-6;
  device.reach = 1;
  return device;
}

struct Images {
  int channels, outputs, side, kernel, stride;
  int made() const { return (side - 1) / stride + 1; }
};

program::Program one_of(const Images& of, std::string_view name) {
  const std::string x = fmt::format("bf16[b=64,c={0},h={1},w={1}]", of.channels, of.side),
                    y = fmt::format("bf16[b=64,o={0},h={1},w={1}]", of.outputs, of.made()),
                    w = fmt::format("bf16[o={},c={},r={},q={}]", of.outputs, of.channels, of.kernel,
                                    of.kernel);
  const std::string how = fmt::format("stride={}, padding={}", of.stride, of.kernel / 2);
  const bool is_forward = name == "conv2d", makes_x = name == "conv2d-input-gradient";
  const std::string text = fmt::format(
      "plan p\n%0 = input {{name=a, type={}}}\n%1 = input {{name=b, type={}}}\n%2 = {} %0, %1 "
      "{{{}{}}}\nreturn "
      "y=%2\n",
      is_forward ? x : y, is_forward || makes_x ? w : x, name, how,
      is_forward ? std::string() : ", type=" + (makes_x ? x : w));
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) throw std::runtime_error(graph.error().message + "\n" + text);
  program::CompileOptions options;
  options.any_float = true;
  options.accelerated = true;
  return program::compile(std::make_shared<const plan::Graph>(std::move(*graph)), options).value();
}

double seconds(const Images& of, std::string_view name = "conv2d") {
  const program::Program program = one_of(of, name);
  double sum = 0;
  for (const program::Unit& unit : program.units) sum += unit_seconds(program, unit, h200());
  return sum;
}

TEST(ConvolutionCost, IsNearMeasuredTimesOfResNetsOnAnH200) {
  struct Measured {
    Images of;
    double forward, input_gradient, weight_gradient;  // us
  };
  for (const Measured& measured : {Measured{{64, 64, 56, 3, 1}, 83.0, 88.8, 88.6},
                                   {{128, 128, 56, 3, 2}, 89.4, 93.7, 101.4},
                                   {{128, 128, 28, 3, 1}, 54.0, 54.3, 69.7},
                                   {{256, 512, 56, 1, 2}, 142.8, 161.7, 155.7},
                                   {{256, 128, 56, 1, 1}, 44.4, 48.0, 56.4},
                                   {{256, 256, 14, 3, 1}, 48.7, 48.9, 56.8},
                                   {{1024, 512, 14, 1, 1}, 55.9, 58.0, 61.2},
                                   {{512, 512, 7, 3, 1}, 53.5, 54.2, 55.7},
                                   {{2048, 512, 7, 1, 1}, 36.2, 38.4, 36.2}}) {
    const std::string shape =
        fmt::format("{} to {}, side {}, kernel {}, stride {}", measured.of.channels, measured.of.outputs,
                    measured.of.side, measured.of.kernel, measured.of.stride);
    const auto expect_near = [&](std::string_view name, double microseconds) {
      const double ratio = seconds(measured.of, name) / (microseconds * 1e-6);
      EXPECT_GT(ratio, 0.7) << name << ": " << shape;
      EXPECT_LT(ratio, 1.3) << name << ": " << shape;
    };
    expect_near("conv2d", measured.forward);
    expect_near("conv2d-input-gradient", measured.input_gradient);
    expect_near("conv2d-weight-gradient", measured.weight_gradient);
  }
  // Three channels do not fill a word.
  EXPECT_NEAR(seconds({3, 64, 224, 7, 2}) / 635.8e-6, 1, 0.2);
}

TEST(ConvolutionCost, MatrixLayoutsNeedNoConversion) {
  const auto cost = [](const Images& of) {
    const program::Program program = one_of(of, "conv2d");
    for (std::size_t n = 0; n < program.graph->node_count(); ++n)
      if (const plan::NodeView node = program.graph->view(plan::NodeId(n)); ops::is_convolution(node.op()))
        return convolution_cost(node, h200());
    throw std::runtime_error("no convolution");
  };
  EXPECT_EQ(cost({256, 128, 56, 1, 1}).layout_conversion_seconds, 0);
  EXPECT_EQ(cost({256, 128, 56, 1, 1}).efficiency, 1);
  EXPECT_GT(cost({256, 128, 14, 1, 1}).layout_conversion_seconds,
            0);  // 196 points of 2 bytes are not whole words
  EXPECT_GT(cost({256, 128, 56, 1, 2}).layout_conversion_seconds, 0);
  EXPECT_GT(cost({256, 128, 56, 3, 1}).layout_conversion_seconds,
            cost({256, 128, 28, 3, 1}).layout_conversion_seconds);
  EXPECT_LT(cost({64, 64, 56, 3, 1}).efficiency, 1);
  EXPECT_TRUE(cost({8, 64, 56, 3, 1}).uses_matrix_unit);
  EXPECT_FALSE(cost({3, 64, 56, 3, 1}).uses_matrix_unit);
  EXPECT_EQ(cost({3, 64, 56, 3, 1}).layout_conversion_seconds, 0);
}

TEST(ConvolutionCost, IgnoresAMissingBandwidth) {
  cluster::Device device = h200();
  device.memory_bytes_per_second = 0;
  const program::Program program = one_of({64, 64, 56, 3, 1}, "conv2d");
  for (const program::Unit& unit : program.units) EXPECT_LT(unit_seconds(program, unit, device), 1e-3);
}

}  // namespace
}  // namespace weft::cost
