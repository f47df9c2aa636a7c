#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/rows.h"

namespace weft::device::cuda {
namespace {

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

  Code launch(const LaunchContext& at, const program::Task&) const override {
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

// Normalizes each channel, or each channel of a share of the batch.
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
    return user_error("a batch norm is too large for the GPU: expected channels of fewer than 2^31 points");
  // Vector accesses as wide as contiguity and alignment allow.
  std::int64_t pack = 16 / plan::size_in_bytes(call.what.operands[0].dtype);
  if (call.in[0] % 16 != 0 || call.out[0] % 16 != 0) pack = 1;
  while (inner % pack != 0) pack /= 2;
  // Enough blocks to fill the device, with enough work each.
  const std::int64_t parts = std::clamp((1024 + channels * shares - 1) / (channels * shares), std::int64_t{1},
                                        std::max<std::int64_t>(points / kLeast, 1));
  const std::int64_t each = (points / pack + parts - 1) / parts;
  const auto n = static_cast<double>(points);
  const std::string definitions = fmt::format(
      "{}typedef {} T;\ntypedef {} S;\ntypedef {} R;\n"
      "constexpr unsigned kInner = {}u, kPoints = {}u, kChannels = {}u, kEach = {}u;\n"
      "constexpr int kParts = {}, kPack = {};\nconstexpr bool kTrains = {};\n"
      "constexpr float kEpsilon = {}, kKept = {}, kNew = {}, kUnbiased = {};\n",
      prelude(), type_name(call.what.operands[0].dtype), type_name(call.what.operands[1].dtype),
      type_name(call.what.results[3].dtype), inner / pack, points / pack, channels, each, parts, pack,
      node.word(3) == "train", number(node.real(1)), number(1 - node.real(2)), number(node.real(2)),
      number(points > 1 ? n / (n - 1) : 1));
  const std::string source = kernel_source("batch_norm", definitions);
  std::array<Handle, 2> steps = {};
  for (std::size_t i = 0; const char* const name : {"weft_moments", "weft_norm"}) {
    WEFT_TRY(function, call.gpu.function(source, name));
    steps[i++] = function;
  }
  return std::unique_ptr<Kernel>(std::make_unique<BatchNormKernel>(
      steps, call,
      BatchNormKernel::Shape{static_cast<unsigned>(channels * shares), static_cast<unsigned>(parts),
                             node.word(3) == "train"}));
}

}  // namespace weft::device::cuda
