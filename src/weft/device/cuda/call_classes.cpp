#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

// Rows of classes may begin anywhere: what lies before and after the stretches of 16 bytes goes one by one.
constexpr std::string_view kRows = R"(
template <class T, int kCount>
struct alignas(16) weft_stretch { T x[kCount]; };
template <class T, class F, class G>
__device__ __forceinline__ void weft_row(const T* x, long long n, F stretch, G single) {
  constexpr int kCount = 16 / sizeof(T);
  long long head = ((16 - (reinterpret_cast<unsigned long long>(x) & 15)) & 15) / sizeof(T);
  if (head > n) head = n;
  if (threadIdx.x < head) single((long long)threadIdx.x);
  const long long whole = (n - head) / kCount;
  for (long long p = threadIdx.x; p < whole; p += 256)
    stretch(head + p * kCount);
  for (long long j = head + whole * kCount + threadIdx.x; j < n; j += 256) single(j);
}
// The largest so far and the sum of exp(x - largest), as softmax goes along.
struct weft_sum {
  float largest = -WEFT_INFINITY, total = 0.0f, whole = 0.0f;
  __device__ __forceinline__ void add(float x) {
    whole += x;
    if (x > largest || x != x) {
      total *= expf(largest - x);
      largest = x;
    }
    total += largest == -WEFT_INFINITY ? 0.0f : expf(x - largest);
  }
  __device__ __forceinline__ void over_row() {
    const float most = weft_over_row<256>(largest, -WEFT_INFINITY, weft_join_max());
    total = largest == -WEFT_INFINITY ? 0.0f : total * expf(largest - most);
    largest = most;
    total = weft_over_row<256>(total, 0.0f, weft_join_sum());
  }
};
)";

}  // namespace

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
  // The program may hand narrow logits over as they are, and have the gradient narrow too.
  const plan::DType from = call.what.operands[0].dtype;
  std::string body = fmt::format(
      "    const long long label = b[i];\n"
      "    const bool counts = label >= 0 && label < {0}ll;\n"
      "    const {1}* const x = a + i * {0}ll;\n"
      "    weft_sum sum;\n"
      "    weft_row(x, {0}ll,\n"
      "             [&](long long j) {{\n"
      "               const auto some = *reinterpret_cast<const weft_stretch<{1}, {2}>*>(x + j);\n"
      "               #pragma unroll\n"
      "               for (int u = 0; u < {2}; ++u) sum.add(float(some.x[u]));\n"
      "             }},\n"
      "             [&](long long j) {{ sum.add(float(x[j])); }});\n"
      "    sum.over_row();\n",
      classes, type_name(from), 16 / plan::size_in_bytes(from));
  if (gradient) {
    const plan::DType to = call.what.results[0].dtype;
    body += fmt::format(
        "    const float factor = counts ? float(c[i]) : 0.0f;\n"
        "    const float share = sum.total == 0.0f ? 0.0f : 1.0f / sum.total;\n"
        "    {3}* const dx = r0 + i * {0}ll;\n"
        "    const auto slope = [&](long long j, float value) {{\n"
        "      const float p = sum.largest == -WEFT_INFINITY ? 0.0f : expf(value - sum.largest) * share;\n"
        "      return !counts ? 0.0f : (p - {1}) * factor - (j == label ? {2} * factor : 0.0f);\n"
        "    }};\n",
        classes, each, sure, type_name(to));
    body += "    const auto single = [&](long long j) { dx[j] = slope(j, float(x[j])); };\n";
    if (plan::size_in_bytes(from) == plan::size_in_bytes(to))
      body += fmt::format(
          "    weft_row(dx, {0}ll,\n"
          "             [&](long long j) {{\n"
          "               const auto some = *reinterpret_cast<const weft_stretch<{1}, {2}>*>(x + j);\n"
          "               weft_stretch<{3}, {2}> made;\n"
          "               #pragma unroll\n"
          "               for (int u = 0; u < {2}; ++u) made.x[u] = slope(j + u, float(some.x[u]));\n"
          "               *reinterpret_cast<weft_stretch<{3}, {2}>*>(dx + j) = made;\n"
          "             }},\n"
          "             single);\n",
          classes, type_name(from), 16 / plan::size_in_bytes(from), type_name(to));
    else
      body += fmt::format("    for (long long j = threadIdx.x; j < {}ll; j += 256) single(j);\n", classes);
  } else {
    if (smoothing > 0)
      body += "    const float whole = weft_over_row<256>(sum.whole, 0.0f, weft_join_sum());\n";
    body += fmt::format(
        "    if (threadIdx.x == 0) r0[i] = counts ? sum.largest + logf(sum.total) - {} * float(x[label]){} : "
        "0.0f;\n",
        sure, smoothing > 0 ? fmt::format(" - {} * whole", each) : "");
  }
  return blocks_kernel(call, over_blocks(call, body, kRows), node.input_type(1).elements());
}

}  // namespace weft::device::cuda
