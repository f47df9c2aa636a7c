// weft/device/cpu/lanes_kernels.h -- the functions of lanes.h as a table per instruction set.
//
//   lanes.cpp          kernels for the build's target; picks among all tables
//   lanes_avx2.cpp     the same source compiled for avx2 and fma
//   lanes_avx512.cpp   and for avx512
//
// Each set's namespace defines kLaneKernels. Only these functions are called from outside it, and
// no vector is among their arguments.
#pragma once
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/lanes_channels.h"
#include "weft/device/cpu/lanes_optimizers.h"
#include "weft/device/cpu/lanes_pointwise.h"
#include "weft/device/cpu/lanes_rows.h"
#include "weft/device/cpu/lanes_windows.h"

// Whether the build contains the wider sets: x86 only.
#if defined(__x86_64__)
#define WEFT_LANES_WIDER 1
#else
#define WEFT_LANES_WIDER 0
#endif

namespace weft::device::cpu {

struct LaneKernels {
  decltype(&cpu::run_lane) run_lane;
  decltype(&sum_lanes) sum, max, min;
  decltype(&dot_lanes) dot;
  decltype(&accumulate_lanes) accumulate;
  decltype(&accumulate_product_lanes) accumulate_product;
  decltype(&softmax_row) softmax;
  decltype(&log_sum_exp_row) log_sum_exp;
  decltype(&exponential_row) exponentials;
  decltype(&softmax_gradient_row) softmax_slope;
  decltype(&layer_norm_row) layer_norm;
  decltype(&rms_norm_row) rms_norm;
  decltype(&sgd_lanes) sgd;
  decltype(&momentum_lanes) momentum;
  decltype(&adam_lanes) adam;
  decltype(&cpu::channel_sums) channel_sums;
  decltype(&cpu::channel_squares) channel_squares;
  decltype(&cpu::channel_normalize) channel_normalize;
  decltype(&cpu::correlate) correlate;
  decltype(&cpu::correlate_gradient) correlate_gradient;
  decltype(&cpu::max_of_windows) max_of_windows, mean_of_windows;
  decltype(&cpu::scatter_to_maximum) scatter_to_maximum;
  decltype(&cpu::max_of_squares) max_of_squares;
  decltype(&cpu::copy_rows) copy_rows;
  decltype(&cpu::split_rows) split_rows;
};

extern const LaneKernels kAvx2Lanes, kAvx512Lanes;  // if WEFT_LANES_WIDER

namespace WEFT_LANES {

inline constexpr LaneKernels kLaneKernels = {
    .run_lane = run_lane,
    .sum = sum,
    .max = max,
    .min = min,
    .dot = dot,
    .accumulate = accumulate,
    .accumulate_product = accumulate_product,
    .softmax = softmax,
    .log_sum_exp = log_sum_exp,
    .exponentials = exponentials,
    .softmax_slope = softmax_slope,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .sgd = sgd,
    .momentum = momentum,
    .adam = adam,
    .channel_sums = channel_sums,
    .channel_squares = channel_squares,
    .channel_normalize = channel_normalize,
    .correlate = correlate,
    .correlate_gradient = correlate_gradient,
    .max_of_windows = max_of_windows,
    .mean_of_windows = mean_of_windows,
    .scatter_to_maximum = scatter_to_maximum,
    .max_of_squares = max_of_squares,
    .copy_rows = copy_rows,
    .split_rows = split_rows,
};

}  // namespace WEFT_LANES
}  // namespace weft::device::cpu
