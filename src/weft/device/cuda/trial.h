// weft/device/cuda/trial.h -- measures which of several kernels is fastest, on a separate stream
// and memory.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

class Trial {
 public:
  // Allocates `bytes`, filled with numbers of both signs and magnitudes from 0.5 to 2 in any float
  // type, since zeros multiply faster. Nothing if there is not enough memory.
  static std::optional<Trial> start(Gpu& gpu, std::int64_t bytes);
  ~Trial();
  Trial(Trial&& other) noexcept;
  Trial& operator=(Trial&&) = delete;

  DevicePointer memory() const { return memory_; }

  // Launches on the given stream; returns 0 on success.
  using Launch = std::function<Code(const LaunchContext& at)>;
  // Index of the fastest. Each is measured several times; a later one must be clearly faster than
  // the first.
  std::size_t fastest(std::span<const Launch> launches, const LaunchContext& at);
  // From now on the cache is cleared before each launch: in a step, memory-bound kernels rarely hit
  // it. Returns false if there is no memory to clear it with.
  bool start_cold();
  // From now on launches are recorded and replayed, for kernels that take longer to launch than to
  // run.
  void record_launches() { records_ = true; }
  LaunchContext place(DevicePointer scratch = 0) const;

 private:
  explicit Trial(Gpu& gpu) : gpu_(gpu) {}
  double seconds(const Launch& launch, const LaunchContext& at, int times);
  Code make_noise(DevicePointer at, std::int64_t bytes) const;

  Gpu& gpu_;
  Handle noise_ = nullptr;
  DevicePointer memory_ = 0, cleared_by_ = 0;
  bool records_ = false;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
};

}  // namespace weft::device::cuda
