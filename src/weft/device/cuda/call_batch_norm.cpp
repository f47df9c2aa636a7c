#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

// Blocks (channel, part of its points): sums, squares around the mean, and the results, each waiting for all of
// the one before. Parts are added up in one order, by everybody who wants the whole.
constexpr std::string_view kSteps = R"(
__device__ __forceinline__ float weft_parts(const float* parts) {
  float total = 0.0f;
  for (int p = 0; p < kParts; ++p) total += parts[p];
  return total;
}
struct alignas(sizeof(T) * kPack) Pack { T x[kPack]; };
// What of a channel is this block's, counted in packs.
template <class F>
__device__ __forceinline__ void weft_points(unsigned channel, F each) {
  const long long base = (long long)(channel / kChannels) * kChannels * kPoints + (long long)(channel % kChannels) * kInner;
  const unsigned end = min((blockIdx.y + 1) * kEach, kPoints);
  #pragma unroll 4
  for (unsigned k = blockIdx.y * kEach + threadIdx.x; k < end; k += 256)
    each(base + (long long)(k / kInner) * kChannels * kInner + k % kInner);
}
extern "C" __global__ void __launch_bounds__(256) weft_means(const Pack* x, float* sums) {
  float total = 0.0f;
  weft_points(blockIdx.x, [&](long long at) {
    const Pack some = x[at];
    #pragma unroll
    for (int u = 0; u < kPack; ++u) total += float(some.x[u]);
  });
  total = weft_over_row<256>(total, 0.0f, weft_join_sum());
  if (threadIdx.x == 0) sums[blockIdx.x * kParts + blockIdx.y] = total;
}
extern "C" __global__ void __launch_bounds__(256) weft_squares(const Pack* x, const float* sums, float* squares) {
  const float mean = weft_parts(sums + blockIdx.x * kParts) / float(kPoints * kPack);
  float total = 0.0f;
  weft_points(blockIdx.x, [&](long long at) {
    const Pack some = x[at];
    #pragma unroll
    for (int u = 0; u < kPack; ++u) total += (float(some.x[u]) - mean) * (float(some.x[u]) - mean);
  });
  total = weft_over_row<256>(total, 0.0f, weft_join_sum());
  if (threadIdx.x == 0) squares[blockIdx.x * kParts + blockIdx.y] = total;
}
extern "C" __global__ void __launch_bounds__(256) weft_norm(const Pack* x, const S* mean_before, const S* variance_before,
    const float* sums, const float* squares, Pack* y, S* mean_after, S* variance_after, R* rstd_after) {
  const unsigned i = blockIdx.x;
  float mean, rstd;
  if (kTrains) {
    mean = weft_parts(sums + i * kParts) / float(kPoints * kPack);
    const float variance = weft_parts(squares + i * kParts) / float(kPoints * kPack);
    rstd = 1.0f / sqrtf(variance + kEpsilon);
    if (threadIdx.x == 0 && blockIdx.y == 0) {
      rstd_after[i] = rstd;
      mean_after[i] = kKept * float(mean_before[i]) + kNew * mean;
      variance_after[i] = kKept * float(variance_before[i]) + kNew * (variance * kUnbiased);
    }
  } else {
    mean = float(mean_before[i]);
    rstd = 1.0f / sqrtf(float(variance_before[i]) + kEpsilon);
    if (threadIdx.x == 0 && blockIdx.y == 0) {
      rstd_after[i] = rstd;
      mean_after[i] = mean_before[i];
      variance_after[i] = variance_before[i];
    }
  }
  weft_points(i, [&](long long at) {
    const Pack some = x[at];
    Pack made;
    #pragma unroll
    for (int u = 0; u < kPack; ++u) made.x[u] = (float(some.x[u]) - mean) * rstd;
    y[at] = made;
  });
}
)";

class BatchNormKernel final : public Kernel {
 public:
  struct Shape {
    unsigned channels, parts;
    bool trains;
  };
  BatchNormKernel(std::array<Handle, 3> steps, const Call& call, Shape shape)
      : steps_(steps), in_(call.in), out_(call.out), shape_(shape) {}

  std::int64_t scratch_bytes() const override { return 2 * part_bytes(); }

  Code launch(const LaunchPlace& at, const program::Task&) const override {
    const DevicePointer sums = at.scratch, squares = at.scratch + static_cast<DevicePointer>(part_bytes());
    const std::array<unsigned, 2> grid = {shape_.channels, shape_.parts}, block = {256, 1};
    if (shape_.trains) {
      Parameters means, around;
      if (const Code code = means.pointer(in_[0]).pointer(sums).launch(at, steps_[0], grid, block); code != 0)
        return code;
      around.pointer(in_[0]).pointer(sums).pointer(squares);
      if (const Code code = around.launch(at, steps_[1], grid, block); code != 0) return code;
    }
    Parameters last;
    for (const DevicePointer pointer : in_) last.pointer(pointer);
    last.pointer(sums).pointer(squares);
    for (const DevicePointer pointer : out_) last.pointer(pointer);
    return last.launch(at, steps_[2], grid, block);
  }

 private:
  std::int64_t part_bytes() const { return std::int64_t{4} * shape_.channels * shape_.parts; }

  const std::array<Handle, 3> steps_;
  const std::vector<DevicePointer> in_, out_;
  const Shape shape_;
};

}  // namespace

// A channel, or a channel of a share of the batch, is what is normed.
Made make_batch_norm(const Call& call) {
  const plan::NodeView& node = call.node;
  if (&node.op() != &ops::batch_norm()) return {nullptr};
  const plan::Type x = node.input_type(0), channel = node.input_type(1);
  const bool shared = channel.rank() == 2;
  const auto middle = static_cast<std::size_t>(x.position(channel.dims.back().index));
  const std::int64_t shares = shared ? x.dims[0].size : 1, channels = channel.dims.back().size;
  std::int64_t batch = 1, inner = 1;
  for (std::size_t i = shared ? 1 : 0; i < middle; ++i) batch *= x.dims[i].size;
  for (std::size_t i = middle + 1; i < x.rank(); ++i) inner *= x.dims[i].size;
  const std::int64_t points = batch * inner;
  if (points * channels * shares == 0) return blocks_kernel(call, over_blocks(call, ""), 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 31, kLeast = 4096;
  if (points >= kMost || channels * shares >= kMost)
    return user_error("a batch norm is too large for the GPU: channels of less than 2^31 points are normed");
  // As much at once as lies side by side.
  std::int64_t pack = 16 / plan::size_in_bytes(call.what.operands[0].dtype);
  if (call.in[0] % 16 != 0 || call.out[0] % 16 != 0) pack = 1;
  while (inner % pack != 0) pack /= 2;
  // Enough blocks to fill the device, each with enough to do.
  const std::int64_t parts = std::clamp((1024 + channels * shares - 1) / (channels * shares), std::int64_t{1},
                                        std::max<std::int64_t>(points / kLeast, 1));
  const std::int64_t each = (points / pack + parts - 1) / parts;
  const auto n = static_cast<double>(points);
  const std::string text = fmt::format(
      "{}typedef {} T;\ntypedef {} S;\ntypedef {} R;\n"
      "constexpr unsigned kInner = {}u, kPoints = {}u, kChannels = {}u, kEach = {}u;\n"
      "constexpr int kParts = {}, kPack = {};\nconstexpr bool kTrains = {};\n"
      "constexpr float kEpsilon = {}, kKept = {}, kNew = {}, kUnbiased = {};\n{}",
      prelude(), type_name(call.what.operands[0].dtype), type_name(call.what.operands[1].dtype),
      type_name(call.what.results[3].dtype), inner / pack, points / pack, channels, each, parts, pack,
      node.word(3) == "train", number(node.real(1)), number(1 - node.real(2)), number(node.real(2)),
      number(points > 1 ? n / (n - 1) : 1), kSteps);
  std::array<Handle, 3> steps = {};
  for (std::size_t i = 0; const char* const name : {"weft_means", "weft_squares", "weft_norm"}) {
    WEFT_TRY(function, call.gpu.function(text, name));
    steps[i++] = function;
  }
  return std::unique_ptr<Kernel>(std::make_unique<BatchNormKernel>(
      steps, call,
      BatchNormKernel::Shape{static_cast<unsigned>(channels * shares), static_cast<unsigned>(parts),
                             node.word(3) == "train"}));
}

}  // namespace weft::device::cuda
