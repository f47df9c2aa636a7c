#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/global_offset.h"
#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/sequences.h"

namespace weft::device::cuda {
namespace {

// Concatenates operands along one index, or pads one with zeros.
Made make_concat_or_pad(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Type y = node.result_type(0);
  const auto along = static_cast<std::size_t>(y.position(node.symbol(0)));
  std::int64_t inner = 1;
  for (std::size_t i = along + 1; i < y.rank(); ++i) inner *= y.dims[i].size;
  const bool pads = &node.op() == &ops::pad();
  std::int64_t begin = pads ? node.integer(1) * inner : 0;
  std::string body = fmt::format("    const long long row = i / {0}ll, column = i % {0}ll;\n    r0[i] = ",
                                 std::max<std::int64_t>(y.dims[along].size * inner, 1));
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const std::int64_t run = node.input_type(k).dims[along].size * inner;
    body += fmt::format("column >= {0}ll && column < {1}ll ? {2}[row * {3}ll + column - {0}ll] : ", begin,
                        begin + run, static_cast<char>('a' + k), run);
    begin += run;
  }
  return elements_kernel(call, over_elements(call, body + fmt::format("({})(0);\n", type_name(y.dtype))),
                         y.elements());
}

Made make_dropout(const Call& call) {
  const plan::NodeView& node = call.node;
  const double rate = node.real(0);
  const plan::Type x = node.input_type(0);
  WEFT_TRY(whole, ops::read_global_offset(x, node.integer(2), node.word(3)));
  std::vector<IndexLoop> loops;
  for (std::size_t i = 0; i < x.rank(); ++i) loops.push_back({x.dims[i].size, {whole.strides[i]}});
  const std::string body =
      fmt::format("    long long place = {}ll;\n", whole.begin) + walk("i", loops, {"place"}) +
      fmt::format(
          "    const unsigned word = weft_word((unsigned long long)b[0], {}ull, (unsigned long long)place);\n"
          "    r0[i] = (word >> 8) >= {}u ? a[i] / {} : 0.0f;\n",
          static_cast<std::uint64_t>(node.integer(1)), static_cast<std::uint32_t>(std::ceil(rate * 0x1p24)),
          number(1 - rate));
  return elements_kernel(call, kernel_source("philox") + over_elements(call, body), x.elements());
}

// A thread rotates the same adjacent pairs in several rows that share a position, since their
// angles are expensive: computed in f64, as the processor's tables are.
Made make_rotary(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Type x = node.input_type(0);
  const Symbol along = node.symbol(0), pairs = node.symbol(1);
  const program::Place &from = call.what.operands[0], &to = call.what.results[0];
  const std::int64_t half = x.size_of(pairs) / 2, positions = x.size_of(along);
  if (x.elements() == 0) return elements_kernel(call, over_elements(call, ""), 0);
  const std::int64_t rows = x.elements() / (2 * half * positions);
  constexpr std::int64_t kMostPairs = 4;
  std::int64_t pack = std::min(pack_along(call, 0, pairs), kMostPairs);
  while (pack > 1 && half % pack != 0) pack /= 2;
  constexpr std::int64_t kThreads = 1 << 17, kMostRows = 32;  // enough to fill a GPU
  const std::int64_t packs = half / pack;
  const std::int64_t each =
      std::clamp(packs * positions * rows / kThreads, std::min<std::int64_t>(8, rows), kMostRows);
  std::vector<IndexLoop> loops;  // over rows that share a position
  for (const plan::Dim& dim : x.dims)
    if (dim.index != along && dim.index != pairs)
      loops.push_back({dim.size, {from.stride(dim.index), to.stride(dim.index)}});
  const std::string body =
      fmt::format(
          "    typedef {5} I;\n    typedef weft_pack<{6}, {4}> From;\n    typedef weft_pack<{7}, {4}> To;\n"
          "    const I n = I(i), pair = n % {0} * {4}, position = n / {0} % {1}, row0 = n / {2} * {3};\n",
          packs, positions, packs * positions, each, pack, offset_type(call), type_name(from.dtype),
          type_name(to.dtype)) +
      fmt::format(
          "    float cosine[{4}], sine[{4}];\n"
          "    #pragma unroll\n"
          "    for (int u = 0; u < {4}; ++u) {{\n"
          "      const double angle = double({0}ll + position) * pow({1:.17g}, -double(pair + u) / {2}.0);\n"
          "      cosine[u] = float(cos(angle));\n      sine[u] = {3}float(sin(angle));\n    }}\n",
          node.integer(4), node.real(2), half, node.integer(3) != 0 ? "-" : "", pack) +
      fmt::format(
          "    #pragma unroll 8\n"
          "    for (I row = row0; row < row0 + {0}; ++row) {{\n"
          "    if (row >= {1}) break;\n"
          "    I f = position * {2} + pair * {3}, t = position * {4} + pair * {5};\n",
          each, rows, from.stride(along), from.stride(pairs), to.stride(along), to.stride(pairs)) +
      walk("row", loops, {"f", "t"}, "I") +
      fmt::format(
          "    const From first = *reinterpret_cast<const From*>(a + f),\n"
          "               second = *reinterpret_cast<const From*>(a + f + {1});\n"
          "    To left, right;\n"
          "    #pragma unroll\n"
          "    for (int u = 0; u < {0}; ++u) {{\n"
          "      const float low = first.x[u], high = second.x[u];\n"
          "      left.x[u] = low * cosine[u] - high * sine[u];\n"
          "      right.x[u] = high * cosine[u] + low * sine[u];\n    }}\n"
          "    *reinterpret_cast<To*>(r0 + t) = left;\n"
          "    *reinterpret_cast<To*>(r0 + t + {2}) = right;\n    }}\n",
          pack, half * from.stride(pairs), half * to.stride(pairs));
  return elements_kernel(call, over_elements(call, body, {}, pack_source()),
                         packs * positions * ((rows + each - 1) / each));
}

}  // namespace

Made make_data_movement(const Call& call) {
  const plan::Operator* const op = &call.node.op();
  if (op == &ops::concat() || op == &ops::pad()) return make_concat_or_pad(call);
  if (op == &ops::dropout()) return make_dropout(call);
  if (op == &ops::rotary()) return make_rotary(call);
  return {nullptr};
}

}  // namespace weft::device::cuda
