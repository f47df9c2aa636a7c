#include "weft/parallel/distribute/exceptions.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/decompose_rows.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;

std::uint64_t key_of(NodeId node, std::size_t axis) {
  return static_cast<std::uint64_t>(node.value) << 32 | axis;
}

// The nodes that each exception refers to: the source of that name, or the nodes that compute the
// entry of that name, with or without its scope. Layers share labels, so each label is compared
// once, and each path once per entry.
class Named {
 public:
  Named(const plan::Graph& graph, std::span<const Exception> exceptions)
      : graph_(graph), exceptions_(exceptions), nodes_(exceptions.size()) {
    if (exceptions.empty()) return;
    by_label_.resize(graph.symbols().size());
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      if (ops::is_source(node.op())) {
        for (const std::size_t e : of_label(node.symbol(0)).whole) nodes_[e].push_back(node.id());
      } else if (node.node().label.valid()) {
        for (const std::size_t e : of_entry(node.node().scope, node.node().label))
          nodes_[e].push_back(node.id());
      }
    }
  }

  std::span<const NodeId> of(std::size_t exception) const { return nodes_[exception]; }

 private:
  struct Matches {
    std::vector<std::size_t> whole, ends;  // exceptions that name the label, or a path that ends with it
  };

  const Matches& of_label(Symbol label) {
    std::optional<Matches>& known = by_label_[label.value];
    if (known) return *known;
    known.emplace();
    const std::string_view text = graph_.text(label);
    for (std::size_t e = 0; e < exceptions_.size(); ++e) {
      const std::string_view name = exceptions_[e].tensor;
      if (name == text)
        known->whole.push_back(e);
      else if (name.ends_with(text))
        known->ends.push_back(e);
    }
    return *known;
  }

  const std::vector<std::size_t>& of_entry(plan::ScopeId scope, Symbol label) {
    const Matches& matches = of_label(label);
    if (matches.ends.empty()) return matches.whole;
    const auto key = static_cast<std::uint64_t>(scope.value) << 32 | label.value;
    const auto [known, fresh] = by_entry_.try_emplace(key);
    if (!fresh) return known->second;
    known->second = matches.whole;
    const std::string path = graph_.path(scope, label);
    for (const std::size_t e : matches.ends)
      if (exceptions_[e].tensor == path) known->second.push_back(e);
    return known->second;
  }

  const plan::Graph& graph_;
  const std::span<const Exception> exceptions_;
  std::vector<std::vector<NodeId>> nodes_;                                // by exception
  std::vector<std::optional<Matches>> by_label_;                          // computed on first use
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_entry_;  // by scope and label
};

// Directly, or once decomposed.
bool can_cut(const NodeView& node, const plan::Signature& signature, Symbol index) {
  const std::span<const Symbol> rows = spmd::decomposable_rows(node);
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
  return user_error(fmt::format("two exceptions contradict each other for {} on {}: one {}, one {}",
                                exception.tensor, exception.axis, text(known->second), text(index)),
                    "a tensor has one layout per axis: keep one of the two");
}

Result<Exceptions> Exceptions::resolve(const plan::Graph& graph, const Signatures& signatures,
                                       const Distribution& distribution) {
  Exceptions resolved;
  const Named named(graph, distribution.exceptions);
  for (std::size_t e = 0; e < distribution.exceptions.size(); ++e) {
    const Exception& exception = distribution.exceptions[e];
    const int found_axis = distribution.mesh.find(exception.axis);
    if (found_axis < 0)
      return user_error(fmt::format("the mesh has no axis {}", exception.axis),
                        fmt::format("its axes are {}", plan::print(distribution.mesh)));
    const auto axis = static_cast<std::size_t>(found_axis);
    const Symbol index = exception.index.empty() ? Symbol() : graph.symbols().find(exception.index);
    bool kept = false;
    std::string indices;
    for (const NodeId n : named.of(e)) {
      const NodeView node = graph.view(n);
      const bool source = ops::is_source(node.op());
      if (indices.empty()) indices = names_of(node.result_type(0), graph);
      const bool keeps = exception.index.empty() ||
                         (index.valid() && (source ? node.result_type(0).has(index)
                                                   : can_cut(node, signatures.of(node.id()), index)));
      if (!keeps) continue;
      kept = true;
      WEFT_TRY_STATUS(resolved.add(graph, node.id(), axis, index, exception));
    }
    if (named.of(e).empty()) return unknown_tensor(graph, exception.tensor);
    if (!kept)
      return user_error(fmt::format("{} has no index {} to slice", exception.tensor, exception.index),
                        indices.empty() ? "replicate it instead" : fmt::format("it has {}", indices));
  }
  return resolved;
}

}  // namespace weft::distribute
