#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/operators.h"

namespace weft::device::cuda {
namespace {

// Rows of classes may begin anywhere: what lies before and after the stretches of 16 bytes goes one by one.
constexpr std::string_view kRows = R"(
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) weft_stretch { T x[kCount]; };
template <class T, class F, class G>
__device__ __forceinline__ void weft_row(const T* x, int n, F stretch, G single) {
  constexpr int kCount = 16 / sizeof(T);
  int head = int(((16 - (reinterpret_cast<unsigned long long>(x) & 15)) & 15) / sizeof(T));
  if (head > n) head = n;
  if (threadIdx.x < head) single(int(threadIdx.x));
  const int whole = (n - head) / kCount;
  #pragma unroll 4
  for (int p = threadIdx.x; p < whole; p += 256) stretch(head + p * kCount);
  for (int j = head + whole * kCount + threadIdx.x; j < n; j += 256) single(j);
}
// to[j] = f(from[j]) where stretches of both lie alike: some are read before any is written, for the compiler cannot
// know that the two do not overlap.
template <int kCount, class T, class U, class F>
__device__ __forceinline__ void weft_map(const T* from, U* to, int n, F f) {
  typedef weft_stretch<T, kCount> In;
  typedef weft_stretch<U, kCount> Out;
  constexpr int kAtOnce = 4;
  int head = int(((16 - (reinterpret_cast<unsigned long long>(to) & 15)) & 15) / sizeof(U));
  if (head > n) head = n;
  if (threadIdx.x < head) to[threadIdx.x] = f(float(from[threadIdx.x]));
  const int whole = (n - head) / kCount;
  const In* const in = reinterpret_cast<const In*>(from + head);
  Out* const out = reinterpret_cast<Out*>(to + head);
  const auto made = [&](const In& some) {
    Out all;
    #pragma unroll
    for (int u = 0; u < kCount; ++u) all.x[u] = f(float(some.x[u]));
    return all;
  };
  int p = threadIdx.x;
  for (; p + (kAtOnce - 1) * 256 < whole; p += kAtOnce * 256) {
    In some[kAtOnce];
    #pragma unroll
    for (int v = 0; v < kAtOnce; ++v) some[v] = in[p + v * 256];
    #pragma unroll
    for (int v = 0; v < kAtOnce; ++v) out[p + v * 256] = made(some[v]);
  }
  for (; p < whole; p += 256) out[p] = made(in[p]);
  for (int j = head + whole * kCount + threadIdx.x; j < n; j += 256) to[j] = f(float(from[j]));
}
// The largest so far and the sum of exp(x - largest), as softmax goes along.
__device__ __forceinline__ float weft_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
struct weft_sum {
  float largest = -WEFT_INFINITY, total = 0.0f, whole = 0.0f;
  template <class T, int kCount>
  __device__ __forceinline__ void add(const weft_stretch<T, kCount>& some) {
    float most = largest;
    #pragma unroll
    for (int u = 0; u < kCount; ++u) most = fmaxf(most, float(some.x[u]));
    const float shift = most == -WEFT_INFINITY ? 0.0f : most;
    total *= weft_exp(largest - shift);
    #pragma unroll
    for (int u = 0; u < kCount; ++u) {
      total += weft_exp(float(some.x[u]) - shift);
      whole += float(some.x[u]);
    }
    largest = most;
  }
  // Of the block; `largest` is then a number that may be taken off.
  __device__ __forceinline__ void over_row() {
    const float most = weft_over_row<256>(largest, -WEFT_INFINITY, weft_join_max());
    const float shift = most == -WEFT_INFINITY ? 0.0f : most;
    total = weft_over_row<256>(total * weft_exp(largest - shift), 0.0f, weft_join_sum());
    largest = shift;
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
  // The program may hand narrow logits over as they are, with rows some way apart, and want the gradient so too.
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
    // Stretches of both lie alike.
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
  return blocks_kernel(call, over_blocks(call, body, kRows), node.input_type(1).elements());
}

}  // namespace weft::device::cuda
