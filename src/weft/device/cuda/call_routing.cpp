#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/routing.h"
#include "weft/plan/ops/sequences.h"

namespace weft::device::cuda {
namespace {

// One thread per row, which keeps the largest so far in order; of equals the first comes first.
Made make_top_k(const Call& call) {
  const std::int64_t length = call.node.input_type(0).size_of(call.node.symbol(0)),
                     count = call.node.integer(2);
  const std::string body = fmt::format(
      "    const {2}* const x = a + i * {0}ll;\n"
      "    {2}* const values = r0 + i * {1}ll;\n"
      "    int* const places = r1 + i * {1}ll;\n"
      "    long long taken = 0;\n"
      "    for (long long j = 0; j < {0}ll; ++j) {{\n"
      "      const float value = x[j];\n"
      "      if (taken == {1}ll) {{\n"
      "        if (!weft_above(value, values[taken - 1])) continue;\n"
      "        --taken;\n      }}\n"
      "      long long at = taken++;\n"
      "      for (; at > 0 && weft_above(value, values[at - 1]); --at) {{\n"
      "        values[at] = values[at - 1];\n"
      "        places[at] = places[at - 1];\n      }}\n"
      "      values[at] = value;\n"
      "      places[at] = int(j);\n    }}\n",
      length, count, type_name(call.node.input_type(0).dtype));
  const std::string above =
      "__device__ __forceinline__ bool weft_above(float a, float b) { return a > b || (a != a && b == b); "
      "}\n";
  const std::int64_t rows = length > 0 ? call.node.input_type(0).elements() / length : 0;
  return elements_kernel(call, above + over_elements(call, body), rows);
}

// One block per queue. Its threads process 256 items at a time. The warps assign slots of each
// expert in turn, and __match_any_sync finds the lanes with the same expert. With very many
// experts: one thread per item, which counts those before it.
Made make_slot(const Call& call) {
  constexpr std::int64_t kMostCounted = 8192;
  std::int64_t length = 1;
  for (const Symbol index : call.node.indices(2)) length *= call.node.input_type(0).size_of(index);
  const std::int64_t items = call.node.input_type(0).elements(), experts = call.node.integer(0),
                     capacity = call.node.integer(1);
  if (items == 0 || experts > kMostCounted || experts < 1) {
    const std::string body = fmt::format(
        "    const long long first = i / {0}ll * {0}ll, expert = a[i];\n"
        "    long long before = 0;\n"
        "    for (long long j = first; j < i; ++j) before += a[j] == expert;\n"
        "    r0[i] = expert >= 0 && expert < {1}ll && before < {2}ll ? int(expert * {2}ll + before) : -1;\n",
        std::max<std::int64_t>(length, 1), experts, capacity);
    return elements_kernel(call, over_elements(call, body), items);
  }
  const std::string body = fmt::format(
      "    __shared__ int taken[{1}];\n"
      "    __syncthreads();\n"
      "    for (int x = threadIdx.x; x < {1}; x += 256) taken[x] = 0;\n"
      "    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n"
      "    for (long long base = 0; base < {0}ll; base += 256) {{\n"
      "      const long long at = i * {0}ll + base + threadIdx.x;\n"
      "      const bool inside = base + threadIdx.x < {0}ll;\n"
      "      const long long wanted = inside ? (long long)a[at] : -1ll;\n"
      "      const int expert = wanted >= 0 && wanted < {1}ll ? int(wanted) : -1;\n"
      "      const unsigned same = __match_any_sync(0xffffffffu, expert);\n"
      "      const int place = __popc(same & ((1u << lane) - 1));\n"
      "      int before = 0;\n"
      "      for (int turn = 0; turn < 8; ++turn) {{\n"
      "        __syncthreads();\n"
      "        if (turn != warp || expert < 0) continue;\n"
      "        before = taken[expert] + place;\n"
      "        __syncwarp(same);\n"
      "        if (place == 0) taken[expert] += __popc(same);\n      }}\n"
      "      if (inside) r0[at] = expert >= 0 && before < {2}ll ? int(expert * {2}ll + before) : -1;\n    "
      "}}\n",
      length, experts, capacity);
  return blocks_kernel(call, over_blocks(call, body), items / length);
}

// One thread per point of the indices that do not recur.
Made make_recurrence(const Call& call) {
  const plan::Type decay = call.node.input_type(0), x = call.node.input_type(1);
  const Symbol along = call.node.symbol(0);
  std::vector<IndexLoop> loops;
  std::int64_t threads = 1;
  for (const plan::Dim& dim : x.dims) {
    if (dim.index == along) continue;
    loops.push_back({dim.size, {plain_stride(decay, dim.index), plain_stride(x, dim.index)}});
    threads *= dim.size;
  }
  const bool reverse = call.node.integer(1) != 0;
  const std::string body =
      "    long long d = 0, o = 0;\n" + walk("i", loops, {"d", "o"}) +
      fmt::format(
          "    float y = 0.0f;\n"
          "    for (long long k = 0; k < {0}ll; ++k) {{\n"
          "      const long long t = {1};\n"
          "      y = a[d + t * {2}ll] * y + b[o + t * {3}ll];\n"
          "      r0[o + t * {3}ll] = y;\n    }}\n",
          x.size_of(along), reverse ? fmt::format("{}ll - 1 - k", x.size_of(along)) : "k",
          plain_stride(decay, along), plain_stride(x, along));
  return elements_kernel(call, over_elements(call, body), threads);
}

}  // namespace

Made make_routing(const Call& call) {
  const plan::Operator* const op = &call.node.op();
  if (op == &ops::top_k()) return make_top_k(call);
  if (op == &ops::slot()) return make_slot(call);
  if (op == &ops::recurrence()) return make_recurrence(call);
  return {nullptr};
}

}  // namespace weft::device::cuda
