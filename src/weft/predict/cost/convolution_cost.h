// weft/predict/cost/convolution_cost.h -- a convolution's cost on a measured accelerator.
//
//   seconds = launch + conversion + max(flops / (efficiency * rate), bytes / bandwidth)
//
// Images of a plan have layout b c h w (NCHW), and the fast kernels need b h w c (NHWC). A 1x1
// window without strides is a matrix product on the NCHW data, if a plane is a multiple of 16
// bytes. Any other convolution transposes its operands first and its result afterwards
// (device/cuda/convolution.h tries both).
//
//   conversion   operands and results are read and written once more, at 0.7 of the bandwidth; plus a launch
//   efficiency   0.75 where fewer than 128 channels leave tiles partly empty
//
// Channels that are not a multiple of 16 bytes (an image's 3) cannot use the matrix unit and run at
// half of the f32 rate.
//
// Fitted to the 158 convolutions of a ResNet-50 step (b = 64, bf16) on an H200. 127 of them are
// predicted within 20 %, against 67 with a single rate. Their total is predicted as 9.07 ms of 9.09
// ms measured (7.07 ms with a single rate).
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

struct ConvolutionCost {
  double layout_conversion_seconds = 0;
  double efficiency = 1;  // fraction of the device's convolution rate
  bool uses_matrix_unit = true;
};

// REQUIRES: ops::is_convolution(node.op())
ConvolutionCost convolution_cost(const plan::NodeView& node, const cluster::Device& device);

}  // namespace weft::cost
