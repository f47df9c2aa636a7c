#include "weft/device/cuda/kernels.h"

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/launch.h"
#include "weft/program/tasks/grouping.h"

namespace weft::device::cuda {
namespace {

// How many elements along an axis can be moved together: contiguous and aligned on both sides.
std::int64_t copy_pack(const program::Program& program, const program::Copy& copy, std::size_t axis,
                       Address memory) {
  if (copy.from.dtype != copy.to.dtype || copy.from.axes[axis].stride != 1 || copy.to.axes[axis].stride != 1)
    return 1;
  const std::int64_t size = plan::size_in_bytes(copy.to.dtype);
  const auto fits = [&](std::int64_t pack) {
    for (const program::Place* place : {&copy.from, &copy.to}) {
      if (pointer(program, *place, memory) % static_cast<DevicePointer>(pack * size) != 0) return false;
      for (std::size_t i = 0; i < place->axes.size(); ++i)
        if (i != axis && place->axes[i].size != 1 && place->axes[i].stride % pack != 0) return false;
    }
    return copy.to.axes[axis].size % pack == 0;
  };
  std::int64_t pack = 16 / size;
  while (pack > 1 && !fits(pack)) pack /= 2;
  return pack;
}

// Copies elements in the order of the destination, so that writes are contiguous.
Result<std::unique_ptr<Kernel>> make_copy(Functions& gpu, const program::Program& program,
                                          const program::Copy& copy, Address memory) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < copy.to.axes.size(); ++i)
    if (copy.to.axes[i].size != 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return copy.to.axes[a].stride < copy.to.axes[b].stride;
  });
  // Elements contiguous on both sides move in packs.
  const std::int64_t pack = order.empty() ? 1 : copy_pack(program, copy, order.front(), memory);
  std::string walk;
  for (const std::size_t i : order) {
    const bool packed = i == order.front() && pack > 1;
    walk += fmt::format(
        "    {{ const long long k = rest % {0}ll; rest /= {0}ll; f += k * {1}ll; t += k * {2}ll; }}\n",
        packed ? copy.to.axes[i].size / pack : copy.to.axes[i].size,
        packed ? 1 : copy.from.axes[i].stride / pack, packed ? 1 : copy.to.axes[i].stride / pack);
  }
  const std::string text = fmt::format(
      "{0}struct alignas({4}) Pack {{ {1} x[{5}]; }};\n"
      "extern \"C\" __global__ void weft_call(const {6}* from, {7}* to, long long begin, long long end) "
      "{{\n"
      "  const long long step = (long long)gridDim.x * blockDim.x;\n"
      "  for (long long i = begin + (long long)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) "
      "{{\n"
      "    long long rest = i, f = 0, t = 0;\n{2}"
      "    to[t] = {3};\n  }}\n}}\n",
      prelude(), type_name(copy.from.dtype), walk,
      copy.from.dtype == copy.to.dtype ? "from[f]" : "float(from[f])",
      pack * plan::size_in_bytes(copy.from.dtype), pack, pack > 1 ? "Pack" : type_name(copy.from.dtype),
      pack > 1 ? "Pack" : type_name(copy.to.dtype));
  WEFT_TRY(function, gpu.function(text, "weft_call"));
  return std::unique_ptr<Kernel>(std::make_unique<RangeKernel>(
      function, std::vector{pointer(program, copy.from, memory), pointer(program, copy.to, memory)},
      RangeKernel::Shape{.items = copy.to.elements() / pack}));
}

Result<std::unique_ptr<Kernel>> make_combine(Functions& gpu, const program::Program& program,
                                             const program::Combine& combine, Address memory) {
  const std::string text = fmt::format(
      "{0}extern \"C\" __global__ void weft_call(const float* from, {4}* to, long long begin, long long "
      "end) {{\n"
      "  const long long step = (long long)gridDim.x * blockDim.x;\n"
      "  for (long long i = begin + (long long)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) "
      "{{\n"
      "    float total = from[i];\n"
      "    for (long long c = 1; c < {1}ll; ++c) total = {2};\n"
      "    to[i] = total{3};\n  }}\n}}\n",
      prelude(), combine.chunks,
      combined(combine.monoid, "total", fmt::format("from[c * {}ll + i]", combine.elements)),
      combine.divisor == 1 ? "" : fmt::format(" / {}", number(combine.divisor)),
      type_name(combine.result.dtype));
  WEFT_TRY(function, gpu.function(text, "weft_call"));
  return std::unique_ptr<Kernel>(
      std::make_unique<RangeKernel>(function,
                                    std::vector{pointer(memory + program.buffer(combine.partials).offset),
                                                pointer(program, combine.result, memory)},
                                    RangeKernel::Shape{.items = combine.elements}));
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_kernel(Functions& gpu, const program::Program& program,
                                            const program::Unit& unit, Address memory) {
  std::vector<plan::DType> dtypes;
  for (const auto* places : {&unit.reads, &unit.writes})
    for (const program::Place& place : *places) dtypes.push_back(place.dtype);
  if (const auto* loop = std::get_if<program::RowLoop>(&unit.kernel))
    for (const program::RowInstruction& instruction : loop->code) dtypes.push_back(instruction.dtype);
  for (const plan::DType dtype : dtypes)
    if (dtype == plan::DType::f64 || plan::is_f8(dtype))
      return user_error(fmt::format("the GPU has no kernel for {} of {} yet",
                                    program::describe(program, unit), plan::name(dtype)),
                        "precision = f32, bf16 or f16 runs there");
  if (std::holds_alternative<program::MatrixProduct>(unit.kernel))
    return make_product_kernel(gpu, program, unit, memory);
  if (std::holds_alternative<program::RowLoop>(unit.kernel))
    return make_row_kernel(gpu, program, unit, memory);
  if (const auto* copy = std::get_if<program::Copy>(&unit.kernel))
    return make_copy(gpu, program, *copy, memory);
  if (const auto* combine = std::get_if<program::Combine>(&unit.kernel))
    return make_combine(gpu, program, *combine, memory);
  if (const auto* updates = std::get_if<program::Updates>(&unit.kernel))
    return make_update_kernel(gpu, program, updates->calls, memory);
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  WEFT_CHECK(call != nullptr, "an exchange is no kernel");
  if (program::is_optimizer(*program.graph->node(call->node).op))
    return make_update_kernel(gpu, program, {call, 1}, memory);
  return make_call_kernel(gpu, program, unit, memory);
}

}  // namespace weft::device::cuda
