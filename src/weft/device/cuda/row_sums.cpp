#include "weft/device/cuda/row_sums.h"

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"

namespace weft::device::cuda {

using plan::Monoid;
using program::RowLoop;
using program::RowOperand;

namespace {

// Sums are accumulated in f64; a maximum or minimum is one of the addends.
std::string_view type_of_total(Monoid monoid) { return monoid == Monoid::sum ? "double" : "float"; }
std::string joined_total(Monoid monoid) {
  return monoid == Monoid::sum ? "total + x" : combined(monoid, "total", "x");
}

// Location of addend k of an element, as written by the rows: loops in which the accumulator has a
// stride follow from the element; the others are summed.
struct Addends {
  std::string row = "0", walk, column = "0";
  std::int64_t count = 1;
};
Addends addends_of(const RowLoop& loop, const RowOperand& operand) {
  Addends at;
  std::int64_t stride = 1;
  for (std::size_t i = loop.outer.size(); i-- > 0; stride *= loop.outer[i]) {
    if (operand.outer[i] != 0) {
      at.row += fmt::format(" + element / {}ll % {}ll * {}ll", operand.outer[i], loop.outer[i], stride);
    } else {
      at.walk += fmt::format("    row += rest % {0}ll * {1}ll; rest /= {0}ll;\n", loop.outer[i], stride);
      at.count *= loop.outer[i];
    }
  }
  if (operand.along != 0) at.column = fmt::format("element / {}ll % {}ll", operand.along, loop.length);
  if (loop.length == 0) at.count = 0;
  return at;
}

}  // namespace

std::int64_t addends_of_rows(const RowLoop& loop, const program::Accumulator& accumulator) {
  return addends_of(loop, loop.operands[accumulator.memory]).count;
}

std::string sum_of_rows(const RowLoop& loop, const program::Accumulator& accumulator, const SumSource& sum) {
  const RowOperand& operand = loop.operands[accumulator.memory];
  const Addends at = addends_of(loop, operand);
  return fmt::format(
      "extern \"C\" __global__ void {0}(const float* from, {1}* to, long long count) {{\n"
      "  const long long element = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (element >= {2}ll) return;\n"
      "  const long long base = {3}, column = {4};\n"
      "  const long long low = count * blockIdx.y / gridDim.y, high = count * (blockIdx.y + 1) / "
      "gridDim.y;\n"
      "  {1} total = {5};\n"
      "  for (long long k = low; k < high; ++k) {{\n"
      "    long long row = base, rest = k;\n    (void)rest;\n{6}"
      "    const {1} x = from[row * {7}ll + column];\n"
      "    total = {8};\n"
      "  }}\n"
      "  to[blockIdx.y * {2}ll + element] = total;\n}}\n"
      "extern \"C\" __global__ void {9}(const {1}* from, {10}* to, long long segments) {{\n"
      "  const long long element = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (element >= {2}ll) return;\n"
      "  {1} total = {5};\n"
      "  for (int k = 0; k < segments; ++k) {{\n"
      "    const {1} x = from[k * {2}ll + element];\n"
      "    total = {8};\n"
      "  }}\n"
      "  to[element] = {10}(float(total));\n}}\n",
      sum.name, type_of_total(accumulator.monoid), sum.elements, at.row, at.column,
      identity(accumulator.monoid), at.walk, sum.width, joined_total(accumulator.monoid), sum.join,
      type_name(operand.place.dtype));
}

std::string sums_at_once(const RowLoop& loop, std::span<const SumSource> sums, bool of_blocks) {
  std::string parameters, kinds;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const Monoid monoid = loop.accumulators[k].monoid;
    const RowOperand& operand = loop.operands[sums[k].memory];
    const std::string_view to = type_name(operand.place.dtype);
    parameters += fmt::format("const float* c{0}, {1}* r{0}, ", k, to);
    Addends at{.row = "0", .walk = "    row = k;\n", .column = "element"};
    if (!of_blocks) at = addends_of(loop, operand);
    // An element's addends are split into 32 parts, with one element per lane; then each warp
    // combines one element's parts.
    kinds += fmt::format(
        "  if (blockIdx.y == {0}) {{\n"
        "    const long long element = (long long)blockIdx.x * {2} + threadIdx.x;\n"
        "    const long long made = (long long)blockIdx.x * {2} + threadIdx.y;\n"
        "    const int count = {8};\n"
        "    const int low = count * int(threadIdx.y) / {2}, high = count * int(threadIdx.y + 1) / {2};\n"
        "    {1} total = {3};\n"
        "    if (element < {4}ll) {{\n"
        "      const long long base = {9}, column = {10};\n"
        "      #pragma unroll 8\n"
        "      for (int k = low; k < high; ++k) {{\n"
        "    long long row = base, rest = k;\n    (void)rest;\n{11}"
        "        const {1} x = c{0}[row * {5}ll + column];\n"
        "        total = {6};\n"
        "      }}\n"
        "    }}\n"
        "    parts[threadIdx.y][threadIdx.x] = total;\n"
        "    __syncthreads();\n"
        "    total = {1}(parts[threadIdx.x][threadIdx.y]);\n"
        "    for (int lane = 16; lane > 0; lane /= 2) {{\n"
        "      const {1} x = __shfl_xor_sync(0xffffffffu, total, lane);\n"
        "      total = {6};\n"
        "    }}\n"
        "    if (threadIdx.x == 0 && made < {4}ll) r{0}[made] = {7}(float(total));\n"
        "  }}\n",
        k, type_of_total(monoid), kSummedPlaces, identity(monoid), sums[k].elements, sums[k].width,
        joined_total(monoid), to, of_blocks ? "int(blocks)" : fmt::format("{}", at.count), at.row, at.column,
        at.walk);
  }
  return fmt::format(
      "extern \"C\" __global__ __launch_bounds__({0} * {0}) void {1}({2}long long blocks) {{\n"
      "  __shared__ double parts[{0}][{0} + 1];\n{3}}}\n",
      kSummedPlaces, kSumsAtOnce, parameters, kinds);
}

}  // namespace weft::device::cuda
