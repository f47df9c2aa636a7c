#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {

// A block a row of classes.
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
  std::string body = fmt::format(
      "    const long long label = b[i];\n"
      "    const bool counts = label >= 0 && label < {0}ll;\n"
      "    const float* const x = a + i * {0}ll;\n"
      "    float largest = -WEFT_INFINITY, whole = 0.0f;\n"
      "    for (long long j = threadIdx.x; j < {0}ll; j += 256) largest = weft_max(largest, x[j]);\n"
      "    largest = weft_over_row<256>(largest, -WEFT_INFINITY, weft_join_max());\n"
      "    float total = 0.0f;\n"
      "    for (long long j = threadIdx.x; j < {0}ll; j += 256) {{\n"
      "      total += largest == -WEFT_INFINITY ? 0.0f : expf(x[j] - largest);\n"
      "      whole += x[j];\n    }}\n"
      "    total = weft_over_row<256>(total, 0.0f, weft_join_sum());\n",
      classes);
  if (gradient) {
    body += fmt::format(
        "    const float factor = counts ? c[i] : 0.0f, share = total == 0.0f ? 0.0f : 1.0f / total;\n"
        "    for (long long j = threadIdx.x; j < {0}ll; j += 256) {{\n"
        "      const float p = largest == -WEFT_INFINITY ? 0.0f : expf(x[j] - largest) * share;\n"
        "      float dx = (p - {1}) * factor;\n"
        "      if (j == label) dx -= {2} * factor;\n"
        "      r0[i * {0}ll + j] = counts ? dx : 0.0f;\n    }}\n",
        classes, each, sure);
  } else {
    if (smoothing > 0) body += "    whole = weft_over_row<256>(whole, 0.0f, weft_join_sum());\n";
    body += fmt::format(
        "    if (threadIdx.x == 0) r0[i] = counts ? largest + logf(total) - {} * x[label]{} : 0.0f;\n", sure,
        smoothing > 0 ? fmt::format(" - {} * whole", each) : "");
  }
  return blocks_kernel(call, over_blocks(call, body), node.input_type(1).elements());
}

}  // namespace weft::device::cuda
