#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/rows.h"

namespace weft::device::cuda {
namespace {}  // namespace

// One block per row of classes.
Made make_classes(const Call& call) {
  const plan::NodeView& node = call.node;
  if (&node.op() == &ops::labelled()) {
    const std::string body =
        fmt::format("    r0[i] = a[i] >= 0 && a[i] < {}ll ? 1.0f : 0.0f;\n", node.integer(0));
    return elements_kernel(call, over_elements(call, body), node.input_type(0).elements());
  }
  const bool gradient = &node.op() == &ops::cross_entropy_gradient();
  if (!gradient && &node.op() != &ops::cross_entropy()) return {nullptr};
  const std::int64_t classes = node.input_type(0).size_of(node.symbol(0));
  const double smoothing = node.real(1);
  const std::string sure = number(1 - smoothing), each = number(smoothing / static_cast<double>(classes));
  // Logits and their gradient may be narrow and have strided rows.
  const program::Place& from = call.what.operands[0];
  std::vector<plan::Dim> rest;
  for (const plan::Dim& dim : node.input_type(0).dims)
    if (dim.index != node.symbol(0)) rest.push_back(dim);
  const auto apart = [&](const program::Place& place) { return step_along(place, rest).value_or(classes); };
  const std::int64_t count = 16 / plan::size_in_bytes(from.dtype);
  std::string body = fmt::format(
      "    const long long label = b[i];\n"
      "    const bool counts = label >= 0 && label < {0};\n"
      "    const {1}* const x = a + i * {2}ll;\n"
      "    typedef weft_stretch<{1}, {3}> Stretch;\n"
      "    weft_sum sum;\n"
      "    weft_row(x, {0}, [&](int j) {{ sum.add(*reinterpret_cast<const Stretch*>(x + j)); }},\n"
      "             [&](int j) {{ sum.add(*reinterpret_cast<const weft_stretch<{1}, 1>*>(x + j)); }});\n"
      "    sum.over_row();\n",
      classes, type_name(from.dtype), apart(from), count);
  if (gradient) {
    const program::Place& to = call.what.results[0];
    body += fmt::format(
        "    const float factor = counts ? float(c[i]) : 0.0f;\n"
        "    const float share = sum.total == 0.0f ? 0.0f : factor / sum.total, less = {0} * factor;\n"
        "    {1}* const dx = r0 + i * {2}ll;\n"
        "    const auto slope = [&](float value) {{\n"
        "      return counts ? weft_exp(value - sum.largest) * share - less : 0.0f;\n"
        "    }};\n",
        each, type_name(to.dtype), apart(to));
    // Both have their 16-byte groups at the same positions.
    if (plan::size_in_bytes(from.dtype) == plan::size_in_bytes(to.dtype) &&
        (apart(from) - apart(to)) % count == 0 && (from.offset - to.offset) % count == 0)
      body += fmt::format("    weft_map<{}>(x, dx, {}, slope);\n", count, classes);
    else
      body += fmt::format("    for (int j = threadIdx.x; j < {}; j += 256) dx[j] = slope(float(x[j]));\n",
                          classes);
    body += fmt::format(
        "    __syncthreads();\n"
        "    if (threadIdx.x == 0 && counts) dx[label] = slope(float(x[label])) - {} * factor;\n",
        sure);
  } else {
    if (smoothing > 0)
      body += "    const float whole = weft_over_row<256>(sum.whole, 0.0f, weft_join_sum());\n";
    body += fmt::format(
        "    if (threadIdx.x == 0) r0[i] = counts ? sum.largest + logf(sum.total) - {} * float(x[label]){} : "
        "0.0f;\n",
        sure, smoothing > 0 ? fmt::format(" - {} * whole", each) : "");
  }
  return blocks_kernel(call, over_blocks(call, body, kernel_source("classes")),
                       node.input_type(1).elements());
}

}  // namespace weft::device::cuda
