#include "weft/cost/convolution_cost.h"

#include <algorithm>

#include "weft/ops/convolution.h"
#include "weft/ops/operators.h"

namespace weft::cost {
namespace {

constexpr std::int64_t kWord = 16;  // bytes that a kernel reads at once
constexpr std::int64_t kWideChannels = 128;
constexpr double kNarrowEfficiency = 0.75, kTurningRate = 0.7;

ops::Convolution shape_of(const plan::NodeView& node) {
  const plan::Type& made = node.result_type(0);
  if (&node.op() == &ops::conv2d_input_gradient()) return *ops::convolution(node, made, node.input_type(1));
  if (&node.op() == &ops::conv2d_weight_gradient()) return *ops::convolution(node, node.input_type(1), made);
  return *ops::convolution(node, node.input_type(0), node.input_type(1));
}

}  // namespace

bool is_convolution(const plan::Operator& op) {
  return &op == &ops::conv2d() || &op == &ops::conv2d_input_gradient() ||
         &op == &ops::conv2d_weight_gradient();
}

ConvolutionCost convolution_cost(const plan::NodeView& node, const cluster::Device& device) {
  const ops::Convolution conv = shape_of(node);
  const std::int64_t each = plan::size_in_bytes(node.input_type(0).dtype);
  const auto are_words = [&](std::int64_t elements) { return elements * each % kWord == 0; };
  ConvolutionCost cost;
  cost.uses_matrix_unit = are_words(conv.inputs) && are_words(conv.outputs / conv.groups);
  const bool is_product = conv.rows == 1 && conv.columns == 1 && conv.stride == 1 && conv.padding == 0 &&
                          conv.padding_w == 0 && are_words(conv.high * conv.wide);
  if (is_product || !cost.uses_matrix_unit) return cost;
  const std::int64_t points =
      conv.batch * (conv.channels * conv.height * conv.width + conv.outputs * conv.high * conv.wide);
  cost.turning_seconds = device.launch_seconds + 2 * static_cast<double>(points * each) /
                                                     (kTurningRate * device.memory_bytes_per_second);
  if (std::min(conv.inputs, conv.outputs / conv.groups) < kWideChannels) cost.efficiency = kNarrowEfficiency;
  return cost;
}

}  // namespace weft::cost
