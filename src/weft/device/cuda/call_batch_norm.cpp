#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/operators.h"

namespace weft::device::cuda {
namespace {

// Blocks (channel, part of its points): moments of the part, and the results, which wait for all of these. A thread sums
// up how far its points are from its first one, and their squares: a mean far from zero costs no digits then. Threads and
// parts are joined in one order, by everybody who wants the whole.
constexpr std::string_view kSteps = R"(
struct Moments { float count, mean, squares; };  // squares: of what is left without the mean, summed up
__device__ __forceinline__ Moments weft_joined(Moments a, Moments b) {
  const float count = a.count + b.count, apart = b.mean - a.mean, share = count > 0.0f ? b.count / count : 0.0f;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}
__device__ __forceinline__ Moments weft_moments_over_warp(Moments x) {
  for (int lane = 1; lane < 32; lane *= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, x.count, lane), __shfl_down_sync(0xffffffffu, x.mean, lane),
                           __shfl_down_sync(0xffffffffu, x.squares, lane)};
    x = weft_joined(x, other);
  }
  return x;
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
extern "C" __global__ void __launch_bounds__(256) weft_moments(const Pack* x, Moments* parts) {
  float first = 0.0f, sum = 0.0f, squares = 0.0f;
  unsigned packs = 0;
  weft_points(blockIdx.x, [&](long long at) {
    const Pack some = x[at];
    if (packs == 0) first = float(some.x[0]);
    ++packs;
    #pragma unroll
    for (int u = 0; u < kPack; ++u) {
      const float apart = float(some.x[u]) - first;
      sum += apart;
      squares += apart * apart;
    }
  });
  const float count = float(packs * kPack), mean = packs > 0 ? sum / count : 0.0f;
  Moments mine = weft_moments_over_warp({count, first + mean, fmaxf(squares - sum * mean, 0.0f)});
  __shared__ Moments warps[8];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < 8; ++w) mine = weft_joined(mine, warps[w]);
  parts[blockIdx.x * kParts + blockIdx.y] = mine;
}
extern "C" __global__ void __launch_bounds__(256) weft_norm(const Pack* x, const S* mean_before, const S* variance_before,
    const Moments* parts, Pack* y, S* mean_after, S* variance_after, R* rstd_after) {
  const unsigned i = blockIdx.x;
  float mean, rstd;
  if (kTrains) {
    Moments all = parts[i * kParts];
    for (int p = 1; p < kParts; ++p) all = weft_joined(all, parts[i * kParts + p]);
    mean = all.mean;
    const float variance = all.squares / float(kPoints * kPack);
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
  BatchNormKernel(std::array<Handle, 2> steps, const Call& call, Shape shape)
      : steps_(steps), in_(call.in), out_(call.out), shape_(shape) {}

  std::int64_t scratch_bytes() const override {
    constexpr std::int64_t kMoments = 12;
    return kMoments * shape_.channels * shape_.parts;
  }

  Code launch(const LaunchPlace& at, const program::Task&) const override {
    const std::array<unsigned, 2> grid = {shape_.channels, shape_.parts}, block = {256, 1};
    if (shape_.trains) {
      Parameters moments;
      if (const Code code = moments.pointer(in_[0]).pointer(at.scratch).launch(at, steps_[0], grid, block);
          code != 0)
        return code;
    }
    Parameters last;
    for (const DevicePointer pointer : in_) last.pointer(pointer);
    last.pointer(at.scratch);
    for (const DevicePointer pointer : out_) last.pointer(pointer);
    return last.launch(at, steps_[1], grid, block);
  }

 private:
  const std::array<Handle, 2> steps_;
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
  std::array<Handle, 2> steps = {};
  for (std::size_t i = 0; const char* const name : {"weft_moments", "weft_norm"}) {
    WEFT_TRY(function, call.gpu.function(text, name));
    steps[i++] = function;
  }
  return std::unique_ptr<Kernel>(std::make_unique<BatchNormKernel>(
      steps, call,
      BatchNormKernel::Shape{static_cast<unsigned>(channels * shares), static_cast<unsigned>(parts),
                             node.word(3) == "train"}));
}

}  // namespace weft::device::cuda
