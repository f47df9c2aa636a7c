// weft/runtime/measure/device_rates.h -- rates of an accelerator, measured by running plans on it.
//
//   WEFT_TRY(gpu, device::open_device("cuda:0"));
//   WEFT_TRY(rates, measure::measure_device({.as_is = gpu, .exact = exact}));
//
// Measures what a roofline needs: products of square matrices by type and size, attention and
// convolutions with their gradients, a loop over more memory than any cache holds, a chain of empty
// kernels, and copies from and to the host. Also measures how much computing and communication slow
// each other down.
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

// FLOP/s of bf16 attention and convolutions for one measured shape.
struct KernelRate {
  cluster::KernelKind kind = cluster::KernelKind::attention;
  std::string shape;
  double flops_per_second = 0;
  double efficiency = 1;  // expected fraction of the device's rate for this shape
};

struct DeviceRates {
  std::vector<ProductRate> products;  // by type, in ascending size
  std::vector<KernelRate> kernels;
  double bytes_per_second = 0;  // reads plus writes
  double launch_seconds = 0;    // per additional kernel in a step
  double in_bytes_per_second = 0, out_bytes_per_second = 0;
  std::int64_t memory_bytes = 0;  // free memory
  std::vector<Beside> beside;

  double best(cluster::Precision precision) const;  // 0: not measured
  double typical(cluster::KernelKind kind) const;   // harmonic mean over its shapes; 0: not measured
};

struct DeviceToMeasure {
  std::shared_ptr<device::Device> as_is;  // f32 products use TF32
  std::shared_ptr<device::Device> exact;  // f32 products use f32; null: not measured
  bool quick = false;                     // fewer sizes and repetitions
  std::function<void(std::string_view)> on_note = {};
};

Result<DeviceRates> measure_device(const DeviceToMeasure& what);

}  // namespace weft::measure
