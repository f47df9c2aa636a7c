#include "weft/device/cuda/trial.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/device/cuda/kernel_source.h"
#include "weft/device/cuda/launch.h"
#include "weft/device/cuda/stream.h"
#include "weft/device/recording.h"

namespace weft::device::cuda {
namespace {

constexpr double kFailed = 1e9;          // seconds
constexpr double kClearlyFaster = 0.98;  // margin above measurement noise
// Larger than any GPU's cache.
constexpr std::int64_t kClearing = 256 << 20;

}  // namespace

std::optional<Trial> Trial::start(Gpu& gpu, std::int64_t bytes) {
  Trial made(gpu);
  if (gpu.driver().allocate(&made.memory_, static_cast<std::size_t>(bytes)) != 0) {
    made.memory_ = 0;
    return {};
  }
  const auto noise = gpu.function(kernel_source("noise"), "weft_noise");
  auto stream = gpu.make_stream({.computes = false});
  auto begin = gpu.make_event(), end = gpu.make_event();
  if (!noise.ok() || !stream.ok() || !begin.ok() || !end.ok()) return {};
  made.stream_ = std::move(*stream);
  made.begin_ = std::move(*begin);
  made.end_ = std::move(*end);
  made.noise_ = *noise;
  if (made.make_noise(made.memory_, bytes) != 0) return {};
  return made;
}

Code Trial::make_noise(DevicePointer at, std::int64_t bytes) const {
  Parameters parameters;
  parameters.pointer(at).whole(bytes / 4);
  return parameters.launch(place(), noise_, {1024, 1}, {256, 1});
}

bool Trial::start_cold() {
  if (gpu_.driver().allocate(&cleared_by_, static_cast<std::size_t>(kClearing)) != 0) cleared_by_ = 0;
  return cleared_by_ != 0;
}

Trial::Trial(Trial&& other) noexcept
    : gpu_(other.gpu_),
      noise_(other.noise_),
      memory_(std::exchange(other.memory_, 0)),
      cleared_by_(std::exchange(other.cleared_by_, 0)),
      records_(other.records_),
      stream_(std::move(other.stream_)),
      begin_(std::move(other.begin_)),
      end_(std::move(other.end_)) {}

Trial::~Trial() {
  stream_.reset();  // waits for running work
  gpu_.enter();
  for (const DevicePointer taken : {memory_, cleared_by_})
    if (taken != 0) gpu_.driver().free(taken);
}

LaunchContext Trial::place(DevicePointer scratch) const {
  return {gpu_, raw_stream(*stream_), nullptr, scratch};
}

double Trial::seconds(const Launch& launch, const LaunchContext& at, int times) {
  if (cleared_by_ == 0 && launch(at) != 0) return kFailed;
  if (cleared_by_ != 0 && make_noise(cleared_by_, kClearing) != 0) return kFailed;
  const auto launch_all = [&] {
    for (int i = 0; i < times; ++i)
      if (launch(at) != 0) return false;
    return true;
  };
  std::unique_ptr<Recording> recording;
  RecordingStream* const recorder = records_ ? as_recording(*stream_) : nullptr;
  if (recorder != nullptr) {
    recorder->start_recording();
    const bool good = launch_all();
    auto made = recorder->end_recording();
    if (!good || !made.ok()) return kFailed;
    recording = std::move(*made);
  }
  stream_->record(*begin_);
  if (recording != nullptr)
    recorder->launch(*recording);
  else if (!launch_all())
    return kFailed;
  stream_->record(*end_);
  if (!end_->wait().ok()) return kFailed;
  return end_->seconds_since(*begin_) / times;
}

std::size_t Trial::fastest(std::span<const Launch> launches, const LaunchContext& at) {
  std::vector<double> best(launches.size(), kFailed);
  const std::vector<int> rounds = cleared_by_ != 0 ? std::vector{1, 1, 1, 1} : std::vector{2, 5};
  for (const int times : rounds)
    for (std::size_t i = 0; i < launches.size(); ++i)
      best[i] = std::min(best[i], seconds(launches[i], at, times));
  const auto least = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
  return best[least] < kClearlyFaster * best.front() ? least : 0;
}

}  // namespace weft::device::cuda
