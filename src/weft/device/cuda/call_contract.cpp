#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/sums.h"

namespace weft::device::cuda {

// Contractions that are not matrix products: many factors at once, or integers. One thread per
// result, in f64.
Made make_contraction(const Call& call) {
  if (&call.node.op() != &ops::contract()) return {nullptr};
  const plan::Type y = call.node.result_type(0);
  std::vector<std::string> offsets;
  std::string starts, inner_starts, product;
  for (std::size_t s = 0; s < call.in.size(); ++s) {
    offsets.push_back(fmt::format("o{}", s));
    starts += fmt::format("    long long o{} = 0;\n", s);
    inner_starts += fmt::format("{}m{} = o{}", s == 0 ? "      long long " : ", ", s, s);
    product += fmt::format("{}double({}[m{}])", s == 0 ? "" : " * ", static_cast<char>('a' + s), s);
  }
  const auto walked = [&](const plan::Dim& dim) {
    IndexLoop loop{dim.size, {}};
    for (const program::Place& place : call.what.operands) loop.strides.push_back(place.stride(dim.index));
    return loop;
  };
  std::vector<IndexLoop> outer, summed;
  std::vector<Symbol> seen;
  std::int64_t terms = 1;
  for (const plan::Dim& dim : y.dims) {
    outer.push_back(walked(dim));
    seen.push_back(dim.index);
  }
  for (std::size_t s = 0; s < call.in.size(); ++s)
    for (const plan::Dim& dim : call.node.input_type(s).dims) {
      if (std::find(seen.begin(), seen.end(), dim.index) != seen.end()) continue;
      seen.push_back(dim.index);
      summed.push_back(walked(dim));
      terms *= dim.size;
    }
  std::vector<std::string> inner;
  for (std::size_t s = 0; s < call.in.size(); ++s) inner.push_back(fmt::format("m{}", s));
  const std::string body = starts + walk("i", outer, offsets) +
                           fmt::format(
                               "    double total = 0.0;\n"
                               "    for (long long k = 0; k < {}ll; ++k) {{\n{};\n      {{\n{}      }}\n     "
                               " total += {};\n    }}\n"
                               "    r0[i] = ({})(total);\n",
                               terms, inner_starts, walk("k", summed, inner), product, type_name(y.dtype));
  return elements_kernel(call, over_elements(call, body), y.elements());
}

}  // namespace weft::device::cuda
