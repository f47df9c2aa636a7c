// weft/predict/cost/convolution_cost.h -- what a convolution's shape costs on an accelerator that was measured.
//
//   seconds = launch + turning + max(flops / (efficiency * rate), bytes / bandwidth)
//
// Images of a plan lie as b c h w, and the fast kernels want b h w c. A window of one point without strides is a product of
// what lies there, if a plane is of whole words (16 bytes). Anything else is turned first, and so is what it makes
// (device/cuda/convolution.h tries both).
//
//   turning      what is read and made is read and written once more, at 0.7 of the bandwidth; and a launch
//   efficiency   0.75 where fewer than 128 channels leave a part of the tiles empty
//   channels that are no whole words (an image's 3) do without the matrix unit: half of the rate of f32
//
// Fitted to the 158 convolutions of a step of ResNet-50 (b = 64, bf16) on an H200: 127 of them are within 20 % of what they
// take, where one rate for all had 67, and together they are 9.07 ms of 9.09 (it had 7.07).
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

struct ConvolutionCost {
  double turning_seconds = 0;
  double efficiency = 1;  // of the device's rate for convolutions
  bool uses_matrix_unit = true;
};

// REQUIRES: ops::is_convolution(node.op())
ConvolutionCost convolution_cost(const plan::NodeView& node, const cluster::Device& device);

}  // namespace weft::cost
