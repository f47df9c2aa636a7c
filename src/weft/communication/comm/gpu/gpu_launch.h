// weft/communication/comm/gpu/gpu_launch.h -- a kernel launch on a stream that belongs to no unit
// of a program.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "weft/device/cuda/gpu.h"

namespace weft::comm::gpu {

class GpuLaunch final : public device::cuda::Kernel {
 public:
  using Do = std::function<device::cuda::Code(const device::cuda::LaunchContext& at)>;
  GpuLaunch(std::string name, Do launch) : launch_(std::move(launch)) { what = std::move(name); }
  device::cuda::Code launch(const device::cuda::LaunchContext& at, const program::Task&) const override {
    return launch_(at);
  }

 private:
  const Do launch_;
};

}  // namespace weft::comm::gpu
