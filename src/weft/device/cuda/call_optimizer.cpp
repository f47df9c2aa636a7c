#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/ops/operators.h"

namespace weft::device::cuda {
namespace {

constexpr std::string_view kPacks = R"(
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) weft_pack { T x[kCount]; };
template <int kCount, class T>
__device__ __forceinline__ weft_pack<T, kCount> weft_take(const T* from, long long i) {
  return reinterpret_cast<const weft_pack<T, kCount>*>(from)[i];
}
template <int kCount, class T>
__device__ __forceinline__ void weft_put(T* to, long long i, const weft_pack<T, kCount>& some) {
  reinterpret_cast<weft_pack<T, kCount>*>(to)[i] = some;
}
)";

// Elements that a thread takes at once: what they are read and written by must begin and end at whole packs.
std::int64_t pack_size(const Call& call, std::size_t tensors, std::int64_t elements) {
  constexpr std::int64_t kPack = 4;
  if (elements % kPack != 0) return 1;
  const auto is_even = [&](DevicePointer at, plan::DType dtype) {
    return at % static_cast<DevicePointer>(kPack * plan::size_in_bytes(dtype)) == 0;
  };
  for (std::size_t i = 0; i < tensors; ++i)
    if (!is_even(call.in[i], call.what.operands[i].dtype)) return 1;
  for (std::size_t i = 0; i < call.out.size(); ++i)
    if (!is_even(call.out[i], call.what.results[i].dtype)) return 1;
  return kPack;
}

// 1 / (1 - beta^t), without losing digits where beta^t is nearly 1.
std::string unbiased(double beta) {
  return beta > 0 ? fmt::format("-1.0f / expm1f(t * {})", number(std::log(beta))) : "1.0f";
}

}  // namespace

// As device/cpu/lanes_optimizers.h computes them. The step and the schedule's factor are read where they lie.
Made make_optimizer(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Operator* const op = &node.op();
  const bool is_adam = op == &ops::adam() || op == &ops::adamw();
  if (!is_adam && op != &ops::sgd() && op != &ops::momentum()) return {nullptr};
  const std::size_t tensors = is_adam ? 4 : op == &ops::momentum() ? 3 : 2;
  const std::size_t last = is_adam ? 5 : tensors;
  const std::int64_t elements = node.result_type(0).elements();
  const std::int64_t pack = pack_size(call, tensors, elements);
  std::string before = fmt::format(
      "    const float lr = float({:.17g}{});\n", node.real(0),
      call.in.size() > last ? fmt::format(" * double({}[0])", static_cast<char>('a' + last)) : "");
  // All of a pack is read before any of it is written: results may lie where operands do.
  std::string body;
  for (std::size_t i = 0; i < tensors; ++i)
    body += fmt::format("    const auto p{} = weft_take<{}>({}, i);\n", i, pack, static_cast<char>('a' + i));
  for (std::size_t k = 0; k < call.out.size(); ++k)
    body += fmt::format("    weft_pack<{}, {}> q{};\n", type_name(call.what.results[k].dtype), pack, k);
  body += fmt::format("    #pragma unroll\n    for (int u = 0; u < {}; ++u) {{\n", pack);
  if (op == &ops::sgd()) {
    body += "      q0.x[u] = p0.x[u] - lr * float(p1.x[u]);\n";
  } else if (op == &ops::momentum()) {
    body += fmt::format(
        "      const float m = {} * p2.x[u] + float(p1.x[u]);\n"
        "      q0.x[u] = p0.x[u] - lr * m;\n      q1.x[u] = m;\n",
        number(node.real(1)));
  } else {
    const double decay1 = node.real(1), decay2 = node.real(2);
    before += fmt::format(
        "    const float t = float(e[0] + 1);\n"
        "    const float unbiased1 = {}, unbiased2 = {};\n",
        unbiased(decay1), unbiased(decay2));
    body += fmt::format(
        "      const float w = p0.x[u], g = float(p1.x[u]);\n"
        "      const float m = {0} * p2.x[u] + (1.0f - {0}) * g;\n"
        "      const float v = {1} * p3.x[u] + (1.0f - {1}) * (g * g);\n"
        "      const float update = (m * unbiased1) / (sqrtf(v * unbiased2) + {2});\n"
        "      q0.x[u] = w - lr * (update + {3} * w);\n      q1.x[u] = m;\n      q2.x[u] = v;\n",
        number(decay1), number(decay2), number(node.real(3)), number(op == &ops::adamw() ? node.real(4) : 0));
  }
  body += "    }\n";
  for (std::size_t k = 0; k < call.out.size(); ++k) body += fmt::format("    weft_put(r{0}, i, q{0});\n", k);
  return elements_kernel(call, over_elements(call, body, before, kPacks), elements / pack);
}

}  // namespace weft::device::cuda
