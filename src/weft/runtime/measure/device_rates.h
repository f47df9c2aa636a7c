// weft/runtime/measure/device_rates.h -- what an accelerator does by itself, measured by plans that run on it.
//
//   WEFT_TRY(gpu, device::open_device("cuda:0"));
//   WEFT_TRY(rates, measure::measure_device({.as_is = gpu, .exact = exact}));
//
// Products of square matrices by type and side, attention and convolutions and their gradients, a loop over more memory than
// any cache holds, a chain of kernels that have nothing to do, copies from and to the host: what a roofline and its ridges need.
// And how much of that is left where it computes and moves at once.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/device/device.h"
#include "weft/plan/cluster/device.h"
#include "weft/runtime/measure/device_overlap.h"

namespace weft::measure {

struct ProductRate {
  cluster::Precision precision = cluster::Precision::f32;
  std::int64_t side = 0;
  double flops_per_second = 0;
};

// FLOP/s of attention and convolutions of bf16, of each the shapes that were measured.
struct KernelRate {
  cluster::KernelKind kind = cluster::KernelKind::attention;
  std::string shape;
  double flops_per_second = 0;
  double efficiency = 1;  // the part of the device's rate that the shape should reach
};

struct DeviceRates {
  std::vector<ProductRate> products;  // by type, sides growing
  std::vector<KernelRate> kernels;
  double bytes_per_second = 0;  // read and written, both counted
  double launch_seconds = 0;    // of one more kernel in a step
  double in_bytes_per_second = 0, out_bytes_per_second = 0;
  std::int64_t memory_bytes = 0;  // that was free
  std::vector<Beside> beside;

  double best(cluster::Precision precision) const;  // 0: not measured
  double typical(cluster::KernelKind kind) const;   // by what its shapes take together; 0: not measured
};

struct DeviceToMeasure {
  std::shared_ptr<device::Device> as_is;  // multiplies f32 by TF32
  std::shared_ptr<device::Device> exact;  // and in f32; none: not measured
  bool quick = false;                     // fewer sides and repetitions
  std::function<void(std::string_view)> on_note = {};
};

Result<DeviceRates> measure_device(const DeviceToMeasure& what);

}  // namespace weft::measure
