// test/unit/case/lanes_reference.h -- reference results for lanes: operator definitions evaluated
// on given floats.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ops_case.h"
#include "weft/base/random.h"
#include "weft/device/cpu/lanes.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::device::cpu {

using Floats = std::vector<float>;

// The lane for a row of ops/pointwise_rows.h.
inline Lane lane(std::string_view name) {
  const auto rows = ops::pointwise_rows();
  return static_cast<Lane>(std::ranges::find(rows, name, &ops::Pointwise::name) - rows.begin());
}

// The results of `c` on operands of its types, computed in T.
template <class T>
std::vector<std::vector<T>> reference(const ops::Case& c, const std::vector<Floats>& operands) {
  const plan::Graph graph = ops::graph_of(c);
  ops::Numbers<T> numbers;
  Random random(1);
  ops::Tensors<T> inputs = ops::random_inputs(c, graph, numbers, random);
  for (std::size_t i = 0; i < operands.size(); ++i)
    inputs.at(fmt::format("x{}", i)).data.assign(operands[i].begin(), operands[i].end());
  std::vector<std::vector<T>> results;
  for (ops::Tensor<T>& result : ops::outputs_of(graph, inputs, numbers))
    results.push_back(std::move(result.data));
  return results;
}

// Uniform on [low, high).
inline Floats random_floats(Random& random, std::size_t n, double low, double high) {
  Floats x(n);
  for (float& element : x) element = static_cast<float>(low + (high - low) * random.uniform());
  return x;
}

// Equal, or both NaN.
template <class T>
bool same(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace weft::device::cpu
