// Optimizers: one launch updates many tensors; each block updates a range of one tensor.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/optimizers.h"
#include "weft/program/tasks/updates.h"

namespace weft::device::cuda {
namespace {

constexpr std::int64_t kUpdatingThreads = 256, kUpdatedPack = 4, kUpdatedPacks = 2;
constexpr std::int64_t kUpdatedByBlock = kUpdatingThreads * kUpdatedPack * kUpdatedPacks;
constexpr std::size_t kMostUpdated = 32;  // per launch: parameters take at most 4 KiB

// A tensor as the kernel's parameter, in 8-byte fields. Whole packs end at `in_packs`; `first` is
// the number of the tensor's first block.
struct UpdatedTensor {
  DevicePointer in[4] = {}, out[4] = {};
  std::int64_t elements = 0, in_packs = 0, first = 0;
};
struct UpdateTable {
  DevicePointer numbers[2] = {};
  std::int64_t count = 0;
  UpdatedTensor one[kMostUpdated];
};
static_assert(sizeof(UpdateTable) <= 4096);

// 1 / (1 - beta^t), without cancellation where beta^t is close to 1.
std::string unbiased(double beta) {
  return beta > 0 ? fmt::format("-1.0f / expm1f(t * {})", number(std::log(beta))) : "1.0f";
}

// Values common to all elements: the step and the schedule's factor are read from memory.
std::string shared_source(const plan::NodeView& node, const program::OperatorCall& call) {
  const std::size_t first = program::updated_tensors(node.op());
  const bool counts = first == 4;
  const auto read = [&](std::size_t i) {
    return fmt::format("((const {}*)table.numbers[{}])[0]", type_name(call.operands[first + i].dtype), i);
  };
  const bool has_factor = call.operands.size() > first + (counts ? 1 : 0);
  std::string text =
      fmt::format("  const float lr = float({:.17g}{});\n", node.real(0),
                  has_factor ? fmt::format(" * double({})", read(counts ? 1 : 0)) : std::string());
  if (counts)
    text += fmt::format("  const float t = float({} + 1), unbiased1 = {}, unbiased2 = {};\n", read(0),
                        unbiased(node.real(1)), unbiased(node.real(2)));
  return text;
}

// Computes y0, y1.., one per result, from x0, x1.., one element per tensor. Same as
// device/cpu/lanes_optimizers.h.
std::string element_source(const plan::NodeView& node) {
  const plan::Operator* const op = &node.op();
  if (op == &ops::sgd()) return "const float y0 = x0 - lr * x1;";
  if (op == &ops::momentum())
    return fmt::format("const float y1 = {} * x2 + x1, y0 = x0 - lr * y1;", number(node.real(1)));
  return fmt::format(
      "const float y1 = {0} * x2 + (1.0f - {0}) * x1, y2 = {1} * x3 + (1.0f - {1}) * (x1 * x1);\n"
      "      const float update = (y1 * unbiased1) / (sqrtf(y2 * unbiased2) + {2});\n"
      "      const float y0 = x0 - lr * (update + {3} * x0);",
      number(node.real(1)), number(node.real(2)), number(node.real(3)),
      number(op == &ops::adamw() ? node.real(4) : 0));
}

std::string update_source(const plan::NodeView& node, const program::OperatorCall& call) {
  const std::size_t tensors = program::updated_tensors(node.op());
  // A pack is read completely before any of it is written, since results may alias operands.
  std::string places, packs, takes, xs, single_xs, qs, sets, puts, single_puts;
  for (std::size_t i = 0; i < tensors; ++i) {
    const std::string_view type = type_name(call.operands[i].dtype);
    places += fmt::format("  const {0}* const a{1} = (const {0}*)one.in[{1}];\n", type, i);
    packs += fmt::format("  weft_pack<{}, kPack> p{}[kPacks];\n", type, i);
    takes += fmt::format("    p{0}[u] = ((const weft_pack<{1}, kPack>*)a{0})[at];\n", i, type);
    xs += fmt::format("      const float x{0} = float(p{0}[u].x[k]);\n", i);
    single_xs += fmt::format("      const float x{0} = float(a{0}[i]);\n", i);
  }
  for (std::size_t k = 0; k < call.results.size(); ++k) {
    const std::string_view type = type_name(call.results[k].dtype);
    const std::size_t y = k < node.result_count() ? k : 0;  // parameter: the first result, rounded
    places += fmt::format("  {0}* const r{1} = ({0}*)one.out[{1}];\n", type, k);
    qs += fmt::format("    weft_pack<{}, kPack> q{};\n", type, k);
    sets += fmt::format("      q{}.x[k] = y{};\n", k, y);
    puts += fmt::format("    ((weft_pack<{1}, kPack>*)r{0})[at] = q{0};\n", k, type);
    single_puts += fmt::format("      r{}[i] = y{};\n", k, y);
  }
  const std::string element = "      " + element_source(node) + "\n";
  const std::string each_pack =
      "  #pragma unroll\n  for (int u = 0; u < kPacks; ++u) {\n"
      "    const long long at = begin / kPack + u * kThreads + threadIdx.x;\n"
      "    if ((at + 1) * kPack > one.in_packs) continue;\n";
  const std::string definitions =
      fmt::format("{}constexpr int kThreads = {}, kPack = {}, kPacks = {}, kMostTensors = {};\n", prelude(),
                  kUpdatingThreads, kUpdatedPack, kUpdatedPacks, kMostUpdated);
  return kernel_source("updates", definitions) +
         "extern \"C\" __launch_bounds__(256) __global__ void weft_updates(const __grid_constant__ "
         "weft_table table) {\n"
         "  const weft_tensor& one = weft_tensor_of_block(table);\n"
         "  const long long begin = (blockIdx.x - one.first) * kByBlock;\n"
         "  const long long end = begin + kByBlock < one.elements ? begin + kByBlock : one.elements;\n" +
         shared_source(node, call) + places + packs + each_pack + takes + "  }\n" + each_pack + qs +
         "    #pragma unroll\n    for (int k = 0; k < kPack; ++k) {\n" + xs + element + sets + "    }\n" +
         puts +
         "  }\n"
         "  for (long long i = (begin > one.in_packs ? begin : one.in_packs) + threadIdx.x; i < end; i += "
         "kThreads) "
         "{\n" +
         single_xs + element + single_puts + "  }\n}\n";
}

class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(Handle function, std::vector<UpdateTable> tables)
      : function_(function), tables_(std::move(tables)) {}

  Code launch(const LaunchContext& at, const program::Task&) const override {
    for (const UpdateTable& table : tables_) {
      const UpdatedTensor& last = table.one[table.count - 1];
      const std::int64_t blocks = last.first + blocks_of(last);
      if (blocks == 0) continue;
      void* parameters[] = {const_cast<UpdateTable*>(&table)};
      if (const Code code = at.gpu.driver().launch(function_, static_cast<unsigned>(blocks), 1, 1,
                                                   static_cast<unsigned>(kUpdatingThreads), 1, 1, 0,
                                                   at.stream, parameters, nullptr);
          code != 0)
        return code;
    }
    return 0;
  }

  static std::int64_t blocks_of(const UpdatedTensor& tensor) {
    return (tensor.elements + kUpdatedByBlock - 1) / kUpdatedByBlock;
  }

 private:
  const Handle function_;
  const std::vector<UpdateTable> tables_;
};

// Number of elements moved in packs: all whole packs if every tensor is aligned, else 0.
std::int64_t in_packs(const program::OperatorCall& call, const UpdatedTensor& tensor, std::size_t tensors) {
  const auto is_even = [](DevicePointer at, plan::DType dtype) {
    return at % static_cast<DevicePointer>(kUpdatedPack * plan::size_in_bytes(dtype)) == 0;
  };
  for (std::size_t i = 0; i < tensors; ++i)
    if (!is_even(tensor.in[i], call.operands[i].dtype)) return 0;
  for (std::size_t k = 0; k < call.results.size(); ++k)
    if (!is_even(tensor.out[k], call.results[k].dtype)) return 0;
  return tensor.elements / kUpdatedPack * kUpdatedPack;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_update_kernel(Functions& gpu, const program::Program& program,
                                                   std::span<const program::OperatorCall> calls,
                                                   Address memory) {
  const plan::NodeView node = program.graph->view(calls.front().node);
  const std::size_t tensors = program::updated_tensors(node.op());
  std::vector<UpdateTable> tables;
  for (const program::OperatorCall& call : calls) {
    if (tables.empty() || tables.back().count == kMostUpdated) {
      tables.emplace_back();
      for (std::size_t i = tensors; i < call.operands.size(); ++i)
        tables.back().numbers[i - tensors] = pointer(program, call.operands[i], memory);
    }
    UpdateTable& table = tables.back();
    UpdatedTensor& tensor = table.one[table.count];
    if (table.count > 0) {
      const UpdatedTensor& before = table.one[table.count - 1];
      tensor.first = before.first + UpdateKernel::blocks_of(before);
    }
    ++table.count;
    for (std::size_t i = 0; i < tensors; ++i) tensor.in[i] = pointer(program, call.operands[i], memory);
    for (std::size_t k = 0; k < call.results.size(); ++k)
      tensor.out[k] = pointer(program, call.results[k], memory);
    tensor.elements = call.results.front().elements();
    tensor.in_packs = in_packs(call, tensor, tensors);
  }
  WEFT_TRY(function, gpu.function(update_source(node, calls.front()), "weft_updates"));
  return std::unique_ptr<Kernel>(std::make_unique<UpdateKernel>(function, std::move(tables)));
}

}  // namespace weft::device::cuda
