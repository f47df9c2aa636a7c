// test/unit/case/mesh_case.h -- a plan with layouts, run on a virtual mesh and on one device.
#pragma once
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/plan/spmd/mesh.h"

namespace weft::ops {

inline plan::Graph read_plan(std::string_view text) {
  Result<plan::Graph> graph = plan::read(text, all());
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  return std::move(graph).value();
}

// Data parallel: two products, each with a gradient-like sum that is reduced over the ranks.
inline constexpr std::string_view kTwoSums = R"(plan p
%0 = input {name=x, type=f32[b=8,d=4], layout="sliced(b) on gpu"}
%1 = input {name=y, type=f32[b=8,f=4], layout="sliced(b) on gpu"}
%2 = contract %0, %1 {to=[d,f]}
%3 = all-reduce %2 {axis=gpu}
%4 = contract %1, %0 {to=[f,d]}
%5 = all-reduce %4 {axis=gpu}
return p=%3, q=%5
)";

// x[b,d] and w[d,f] with their layouts, followed by the plan's own lines.
inline std::string with_operands(std::array<int, 3> sizes, std::string_view x, std::string_view w,
                                 std::string_view lines) {
  const auto [b, d, f] = sizes;
  return fmt::format(
      "plan p\n%0 = input {{name=x, type=f32[b={},d={}], layout=\"{}\"}}\n"
      "%1 = parameter {{name=w, type=f32[d={},f={}], layout=\"{}\"}}\n{}",
      b, d, x, d, f, w, lines);
}

template <class T>
bool nearly(T a, T b) {
  if constexpr (std::is_same_v<T, Field>)
    return a == b;
  else
    return a == b || std::abs(a - b) <= 1e-9 * (1 + std::abs(a));
}

// Each source of the plan, whole and as the mesh holds it.
template <class T>
struct MeshInputs {
  Tensors<T> whole;
  std::map<std::string, spmd::MeshTensor<T>, std::less<>> held;
};

template <class T>
MeshInputs<T> spread(const plan::Graph& graph, const plan::Mesh& mesh, Tensors<T> whole,
                     std::span<const plan::Layout> layouts, const Numbers<T>& numbers, Random& random) {
  MeshInputs<T> inputs{std::move(whole), {}};
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (!is_source(node.op())) continue;
    const std::string name(node.word(0));
    if (!inputs.whole.contains(name))
      inputs.whole[name] = random_tensor<T>("", node.result_type(0), numbers, random);
    inputs.held[name] = spmd::split_for_mesh(inputs.whole.at(name), node.result_type(0),
                                             layouts[node.result(0).value], mesh, numbers, random)
                            .value();
  }
  return inputs;
}

// "" when every output on the mesh, assembled, equals that of one device; else a description of the
// difference.
template <class T>
std::string difference(const plan::Graph& graph, const plan::Mesh& mesh, Tensors<T> whole = {},
                       std::uint64_t seed = 1) {
  const Numbers<T> numbers = [&] {
    if constexpr (std::is_same_v<T, Field>)
      return Numbers<Field>{.key = seed};
    else
      return Numbers<T>{};
  }();
  Random random(seed);
  const Result<std::vector<plan::Layout>> layouts = spmd::infer_layouts(graph, mesh);
  if (!layouts.ok()) return layouts.error().message;
  const MeshInputs<T> inputs = spread<T>(graph, mesh, std::move(whole), *layouts, numbers, random);
  const std::vector<Tensor<T>> expected = outputs_of<T>(graph, inputs.whole, numbers);
  const Result<std::vector<spmd::MeshTensor<T>>> found = spmd::interpret_on_mesh<T>(
      graph, mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; }, numbers);
  if (!found.ok()) return found.error().message;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const plan::Type type = graph.type(graph.outputs()[o].value);
    const auto name = graph.text(graph.outputs()[o].name);
    const Result<Tensor<T>> joined = spmd::join_from_mesh((*found)[o], type, mesh, numbers);
    if (!joined.ok()) return fmt::format("{}: {}", name, joined.error().message);
    if (joined->sizes != expected[o].sizes) return fmt::format("{}: other sizes", name);
    for (std::size_t i = 0; i < expected[o].data.size(); ++i)
      if (!nearly(expected[o].data[i], joined->data[i]))
        return fmt::format("{}: element {} differs", name, i);
  }
  return "";
}

}  // namespace weft::ops
