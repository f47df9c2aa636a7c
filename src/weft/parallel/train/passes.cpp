#include "weft/parallel/train/passes.h"

#include <array>
#include <cstddef>

namespace weft::train {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::Phase;
using plan::ValueId;

constexpr std::uint32_t kNone = 0, kSeveral = ~std::uint32_t{0};

// Joins the gradients that depend on two values: none, one (by value, from 1), or several.
std::uint32_t joined(std::uint32_t a, std::uint32_t b) {
  if (a == kNone || a == b) return b;
  return b == kNone ? a : kSeveral;
}

// By value: the gradient that depends on it within the backward phase.
std::vector<std::uint32_t> gradients_behind(const Graph& graph) {
  std::vector<std::uint32_t> behind(graph.value_count(), kNone);
  const auto is_backward = [&](NodeId node) { return graph.node(node).when.phase == Phase::backward; };
  const auto leaves = [&](ValueId value) {
    behind[value.value] = joined(behind[value.value], static_cast<std::uint32_t>(value.value) + 1);
  };
  for (const plan::Output& output : graph.outputs()) leaves(output.value);
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const plan::NodeView node = graph.view(NodeId(n));
    const bool update = node.node().when.phase == Phase::update;
    if (!update && !is_backward(node.id())) continue;
    std::uint32_t reached = kNone;
    if (!update)
      for (std::size_t k = 0; k < node.result_count(); ++k)
        reached = joined(reached, behind[node.result(k).value]);
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const ValueId value = node.input(i);
      if (update)
        leaves(value);
      else
        behind[value.value] = joined(behind[value.value], reached);
    }
  }
  return behind;
}

}  // namespace

std::string_view name(Pass pass) {
  constexpr std::array<std::string_view, 4> kNames = {"forward", "backward", "weight", "update"};
  return kNames[static_cast<std::size_t>(pass)];
}

std::vector<Pass> passes_of(const Graph& graph) {
  const std::vector<std::uint32_t> behind = gradients_behind(graph);
  std::vector<Pass> passes(graph.node_count(), Pass::forward);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    if (node.node().when.phase == Phase::update) passes[n] = Pass::update;
    if (node.node().when.phase != Phase::backward) continue;
    std::uint32_t reached = kNone;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      reached = joined(reached, behind[node.result(k).value]);
    passes[n] = reached == kSeveral ? Pass::backward : Pass::weight;
  }
  return passes;
}

}  // namespace weft::train
