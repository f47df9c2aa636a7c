// weft/device/cuda/trial.h -- a stream and memory of their own, to measure which of several kernels is faster.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

class Trial {
 public:
  // So many bytes, of numbers of either sign whose size is between 0.5 and 2 as floats of any type: zeros are multiplied
  // faster. Nothing where there is not so much memory.
  static std::optional<Trial> start(Gpu& gpu, std::int64_t bytes);
  ~Trial();
  Trial(Trial&& other) noexcept;
  Trial& operator=(Trial&&) = delete;

  DevicePointer memory() const { return memory_; }

  // Launches at the given place; 0 when that went well.
  using Launch = std::function<Code(const LaunchPlace& at)>;
  // The fastest, counted from 0: each was measured some times, and another than the first must be clearly faster.
  std::size_t fastest(std::span<const Launch> launches, const LaunchPlace& at);
  // From now on what is launched finds nothing in the GPU's cache: kernels that move memory meet little there in a step.
  // Whether there is memory enough to clear it by.
  bool start_cold();
  // From now on what is launched is recorded first, where the host takes longer to launch it than it runs.
  void record_launches() { records_ = true; }
  LaunchPlace place(DevicePointer scratch = 0) const;

 private:
  explicit Trial(Gpu& gpu) : gpu_(gpu) {}
  double seconds(const Launch& launch, const LaunchPlace& at, int times);
  Code make_noise(DevicePointer at, std::int64_t bytes) const;

  Gpu& gpu_;
  Handle noise_ = nullptr;
  DevicePointer memory_ = 0, cleared_by_ = 0;
  bool records_ = false;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
};

}  // namespace weft::device::cuda
