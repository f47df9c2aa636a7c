#include "weft/distribute/exceptions.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/ops/operators.h"
#include "weft/plan/verify.h"
#include "weft/spmd/open_rows.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;

std::uint64_t key_of(NodeId node, std::size_t axis) {
  return static_cast<std::uint64_t>(node.value) << 32 | axis;
}

// Whether the node computes (part of) the entry of that name, with or without its scope.
bool is_of_entry(const NodeView& node, std::string_view name) {
  const Symbol label = node.node().label;
  if (!label.valid() || ops::is_source(node.op())) return false;
  const std::string_view text = node.text(label);
  return text == name || (name.ends_with(text) && node.graph().path(node.node().scope, label) == name);
}

// As it is, or opened.
bool can_cut(const NodeView& node, const plan::Signature& signature, Symbol index) {
  const std::span<const Symbol> rows = spmd::rows_to_open(node);
  return std::ranges::any_of(signature.loops, [&](const plan::Loop& loop) {
    return (loop.role != plan::Role::whole || std::ranges::find(rows, loop.index) != rows.end()) &&
           has_operand(loop) && bears(node, loop, index);
  });
}

std::string names_of(const plan::Type& type, const plan::Graph& graph) {
  std::vector<std::string_view> names;
  for (const plan::Dim& dim : type.dims) names.push_back(graph.text(dim.index));
  return fmt::format("{}", fmt::join(names, ", "));
}

Error unknown_tensor(const plan::Graph& graph, std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<bool> listed(graph.symbols().size());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    const Symbol known = ops::is_source(node.op()) ? node.symbol(0) : node.node().label;
    if (!known.valid() || listed[known.value]) continue;
    listed[known.value] = true;
    names.push_back(graph.text(known));
  }
  const std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("the plan has no tensor {}", name),
                    hint.empty() ? "DESCRIBE lists the tensors of a model" : hint);
}

}  // namespace

const Symbol* Exceptions::find(NodeId node, std::size_t axis) const {
  const auto found = said_.find(key_of(node, axis));
  return found == said_.end() ? nullptr : &found->second;
}

Status Exceptions::add(const plan::Graph& graph, NodeId node, std::size_t axis, Symbol index,
                       const Exception& exception) {
  const auto [known, fresh] = said_.try_emplace(key_of(node, axis), index);
  if (fresh || known->second == index) return {};
  const auto text = [&](Symbol said) {
    return said.valid() ? fmt::format("slices {}", graph.text(said)) : std::string("replicates it");
  };
  return user_error(fmt::format("two exceptions contradict each other about {} on {}: one {}, one {}",
                                exception.tensor, exception.axis, text(known->second), text(index)),
                    "a tensor lies one way along an axis: keep one of the two");
}

Result<Exceptions> Exceptions::resolve(const plan::Graph& graph, const Signatures& signatures,
                                       const Distribution& distribution) {
  Exceptions resolved;
  for (const Exception& exception : distribution.exceptions) {
    const int found_axis = distribution.mesh.find(exception.axis);
    if (found_axis < 0)
      return user_error(fmt::format("the mesh has no axis {}", exception.axis),
                        fmt::format("its axes are {}", plan::print(distribution.mesh)));
    const auto axis = static_cast<std::size_t>(found_axis);
    const Symbol index = exception.index.empty() ? Symbol() : graph.symbols().find(exception.index);
    bool exists = false, kept = false;
    std::string indices;
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      const bool source = ops::is_source(node.op());
      if (source ? node.word(0) != exception.tensor : !is_of_entry(node, exception.tensor)) continue;
      exists = true;
      if (indices.empty()) indices = names_of(node.result_type(0), graph);
      const bool keeps = exception.index.empty() ||
                         (index.valid() && (source ? node.result_type(0).has(index)
                                                   : can_cut(node, signatures.of(node.id()), index)));
      if (!keeps) continue;
      kept = true;
      WEFT_TRY_STATUS(resolved.add(graph, node.id(), axis, index, exception));
    }
    if (!exists) return unknown_tensor(graph, exception.tensor);
    if (!kept)
      return user_error(
          fmt::format("{} has no index {} along which it could be cut", exception.tensor, exception.index),
          indices.empty() ? "it can only be replicated" : fmt::format("it has {}", indices));
  }
  return resolved;
}

}  // namespace weft::distribute
