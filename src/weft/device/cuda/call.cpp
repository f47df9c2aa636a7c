#include "weft/device/cuda/call.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"

namespace weft::device::cuda {

std::vector<DevicePointer> Call::pointers() const {
  std::vector<DevicePointer> all = in;
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

std::string parameters(const Call& call) {
  std::string text;
  for (std::size_t i = 0; i < call.in.size(); ++i)
    text += fmt::format("const {}* {}, ", type_name(call.what.operands[i].dtype), static_cast<char>('a' + i));
  for (std::size_t k = 0; k < call.out.size(); ++k)
    text += fmt::format("{}* r{}, ", type_name(call.what.results[k].dtype), k);
  return text;
}

std::string over_elements(const Call& call, const std::string& body, const std::string& before,
                          std::string_view helpers) {
  return fmt::format(
      "{}{}extern \"C\" __global__ void weft_call({}long long begin, long long end) {{\n"
      "  const long long step = (long long)gridDim.x * blockDim.x;\n{}"
      "  for (long long i = begin + (long long)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) "
      "{{\n"
      "{}  }}\n}}\n",
      prelude(), helpers, parameters(call), before, body);
}

std::string over_blocks(const Call& call, const std::string& body, std::string_view helpers) {
  return fmt::format(
      "{}{}extern \"C\" __global__ void weft_call({}long long begin, long long end) {{\n"
      "  for (long long i = begin + blockIdx.x; i < end; i += gridDim.x) {{\n{}  }}\n}}\n",
      prelude(), helpers, parameters(call), body);
}

Made elements_kernel(const Call& call, const std::string& text, std::int64_t elements) {
  WEFT_TRY(function, call.gpu.function(text, "weft_call"));
  return std::unique_ptr<Kernel>(
      std::make_unique<RangeKernel>(function, call.pointers(), RangeKernel::Shape{.items = elements}));
}

Made blocks_kernel(const Call& call, const std::string& text, std::int64_t items) {
  WEFT_TRY(function, call.gpu.function(text, "weft_call"));
  return std::unique_ptr<Kernel>(std::make_unique<RangeKernel>(
      function, call.pointers(), RangeKernel::Shape{.by_block = true, .items = items}));
}

std::string walk(const std::string& of, const std::vector<IndexLoop>& loops,
                 const std::vector<std::string>& offsets, std::string_view type) {
  const std::string_view wide = type == "long long" ? "ll" : "";
  std::string text = fmt::format("    {} rest = {};\n", type, of);
  for (std::size_t i = loops.size(); i-- > 0;) {
    text += fmt::format("    {{ const {1} k = rest % {0}{2}; rest /= {0}{2};", loops[i].size, type, wide);
    for (std::size_t o = 0; o < offsets.size(); ++o)
      if (loops[i].strides[o] != 0)
        text += fmt::format(" {} += k * {}{};", offsets[o], loops[i].strides[o], wide);
    text += " }\n";
  }
  return text;
}

std::vector<IndexLoop> row_parts(const program::Place& place, const plan::Type& type, Symbol index) {
  std::vector<IndexLoop> parts;
  for (const program::Axis& axis : axes_of(place, type, index)) parts.push_back({axis.size, {axis.stride}});
  return parts;
}

std::string_view offset_type(const Call& call) {
  std::int64_t most = 0;
  for (const auto* places : {&call.what.operands, &call.what.results})
    for (const program::Place& place : *places) {
      const program::Extent whole = extent(place);
      most = std::max(most, whole.end - whole.begin);
    }
  return most < (std::int64_t{1} << 30) ? "int" : "long long";
}

std::int64_t pack_along(const Call& call, std::size_t operand, Symbol index) {
  const program::Place &from = call.what.operands[operand], &to = call.what.results[0];
  const program::Axis *own = from.find(index), *result = to.find(index);
  if (own == nullptr || result == nullptr || own->stride != 1 || result->stride != 1) return 1;
  const auto fits = [&](const program::Place& place, DevicePointer at, std::int64_t pack) {
    const std::int64_t bytes = std::min<std::int64_t>(pack * plan::size_in_bytes(place.dtype), 16);
    return at % static_cast<DevicePointer>(bytes) == 0 &&
           std::ranges::all_of(place.axes, [&](const program::Axis& axis) {
             return axis.index == index ? axis.size % pack == 0 : axis.stride % pack == 0 || axis.size == 1;
           });
  };
  std::int64_t pack = 16 / std::min(plan::size_in_bytes(from.dtype), plan::size_in_bytes(to.dtype));
  while (pack > 1 && (!fits(from, call.in[operand], pack) || !fits(to, call.out[0], pack))) pack /= 2;
  return pack;
}

std::int64_t plain_stride(const plan::Type& type, Symbol index) {
  std::int64_t stride = 1;
  for (std::size_t i = type.rank(); i-- > 0; stride *= type.dims[i].size)
    if (type.dims[i].index == index) return stride;
  return 0;
}

Result<std::unique_ptr<Kernel>> make_call_kernel(Functions& gpu, const program::Program& program,
                                                 const program::Unit& unit, Address memory) {
  const auto& what = std::get<program::OperatorCall>(unit.kernel);
  Call call{gpu, what, program.graph->view(what.node), {}, {}};
  for (const program::Place& place : what.operands) call.in.push_back(pointer(program, place, memory));
  for (const program::Place& place : what.results) call.out.push_back(pointer(program, place, memory));
  for (const auto make :
       {make_elementwise, make_contraction, make_classes, make_table, make_scatter, make_data_movement,
        make_routing, make_image, make_pool, make_batch_norm, make_attention}) {
    WEFT_TRY(kernel, make(call));
    if (kernel != nullptr) return std::unique_ptr<Kernel>(std::move(kernel));
  }
  return user_error(fmt::format("the GPU has no kernel for {} yet", program::describe(program, unit)),
                    "leave out ON GPU to run on the CPU");
}

}  // namespace weft::device::cuda
