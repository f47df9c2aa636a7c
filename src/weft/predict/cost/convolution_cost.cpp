#include "weft/predict/cost/convolution_cost.h"

#include <algorithm>

#include "weft/plan/ops/convolution.h"

namespace weft::cost {
namespace {

constexpr std::int64_t kWord = 16;  // bytes that a kernel loads at once
constexpr std::int64_t kWideChannels = 128;
constexpr double kNarrowEfficiency = 0.75, kLayoutConversionRate = 0.7;

}  // namespace

ConvolutionCost convolution_cost(const plan::NodeView& node, const cluster::Device& device) {
  const ops::Convolution conv = ops::convolution_of(node);
  const std::int64_t each = plan::size_in_bytes(node.input_type(0).dtype);
  const auto are_words = [&](std::int64_t elements) { return elements * each % kWord == 0; };
  ConvolutionCost cost;
  cost.uses_matrix_unit = are_words(conv.inputs) && are_words(conv.outputs / conv.groups);
  const bool is_product = conv.rows == 1 && conv.columns == 1 && conv.stride == 1 && conv.padding == 0 &&
                          conv.padding_w == 0 && are_words(conv.high * conv.wide);
  if (is_product || !cost.uses_matrix_unit) return cost;
  const std::int64_t points =
      conv.batch * (conv.channels * conv.height * conv.width + conv.outputs * conv.high * conv.wide);
  const double rate = kLayoutConversionRate * device.memory_bytes_per_second;  // 0: not stated, so no limit
  cost.layout_conversion_seconds =
      device.launch_seconds + (rate > 0 ? 2 * static_cast<double>(points * each) / rate : 0);
  if (std::min(conv.inputs, conv.outputs / conv.groups) < kWideChannels) cost.efficiency = kNarrowEfficiency;
  return cost;
}

}  // namespace weft::cost
