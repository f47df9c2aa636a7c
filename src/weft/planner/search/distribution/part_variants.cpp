#include "weft/planner/search/distribution/part_variants.h"

#include <algorithm>
#include <map>

#include "weft/plan/ops/operators.h"

namespace weft::search {

using distribute::Distribution;
using distribute::Exception;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;

struct PartVariants::Cuts {
  std::map<std::string, std::int64_t, std::less<>> steps;

  // The first index of the list with at least one position per rank; reduces what is left of it.
  const std::string* take(const IndexNames& list, std::int64_t ranks) {
    for (const std::string& index : list) {
      const auto found = steps.find(index);
      if (found == steps.end() || found->second < ranks) continue;
      found->second = (found->second + ranks - 1) / ranks;
      return &found->first;
    }
    return nullptr;
  }
};

PartVariants::PartVariants(const Graph& graph, const train::Chain& chain, const Distribution& base,
                           std::vector<std::vector<IndexNames>> lists)
    : graph_(graph),
      chain_(chain),
      base_(base),
      lists_(std::move(lists)),
      signatures_(graph),
      kinds_with_(graph.symbols().size()),
      scopes_with_(graph.symbols().size()) {
  std::vector<bool> seen(chain.kinds);
  for (const train::Part& part : chain.parts) {
    for (const train::Entry& entry : part.entries) {
      ++scopes_with_[entry.label.value];
      if (!seen[part.kind]) kinds_with_[entry.label.value].push_back(part.kind);
    }
    seen[part.kind] = true;
  }
}

// A path without a scope is only a label, which would match all entries with that label.
bool PartVariants::may_be_named(const train::Entry& entry) const {
  return entry.scope.valid() || scopes_with_[entry.label.value] == 1;
}

bool PartVariants::is_excepted(const train::Entry& entry, std::string_view axis) const {
  return std::ranges::any_of(base_.exceptions, [&](const Exception& exception) {
    return exception.axis == axis && (exception.tensor == graph_.text(entry.label) ||
                                      exception.tensor == graph_.path(entry.scope, entry.label));
  });
}

Variant PartVariants::variant_of(const train::Part& part, std::span<const Cuts> cuts,
                                 std::span<const IndexNames* const> instead) const {
  Variant variant;
  for (std::size_t e = 0; e < part.entries.size(); ++e) {
    Cuts by_base = cuts[e], by_variant = cuts[e];
    for (std::size_t axis = 0; axis < base_.axes.size(); ++axis) {
      const plan::MeshAxis& on = base_.mesh.axes[axis];
      const std::string* usual = by_base.take(base_.axes[axis].slice, on.ranks);
      const std::string* now =
          by_variant.take(instead[axis] == nullptr ? base_.axes[axis].slice : *instead[axis], on.ranks);
      if (instead[axis] == nullptr || !may_be_named(part.entries[e]) || is_excepted(part.entries[e], on.name))
        continue;
      const std::string index = now == nullptr ? std::string() : *now;
      if (index != (usual == nullptr ? std::string() : *usual)) variant.said.push_back({e, on.name, index});
    }
  }
  return variant;
}

std::vector<Variant> PartVariants::of(const train::Part& part) const {
  std::set<std::string, std::less<>> indices;
  for (const std::vector<IndexNames>& of_axis : lists_)
    for (const IndexNames& list : of_axis) indices.insert(list.begin(), list.end());
  for (const distribute::AxisUse& use : base_.axes) indices.insert(use.slice.begin(), use.slice.end());

  std::vector<Cuts> cuts(part.entries.size());
  for (const NodeId n : part.nodes) {
    const NodeView node = graph_.view(n);
    const auto entry = std::ranges::find(part.entries, train::Entry{node.node().scope, node.node().label});
    if (entry == part.entries.end()) continue;
    Cuts& of_entry = cuts[static_cast<std::size_t>(entry - part.entries.begin())];
    for (const plan::Loop& loop : signatures_.of(n).loops) {
      if (loop.role == plan::Role::whole || !distribute::has_operand(loop)) continue;
      for (const std::string& index : indices) {
        const Symbol symbol = graph_.symbols().find(index);
        if (!symbol.valid() || !distribute::bears(node, loop, symbol)) continue;
        std::int64_t& steps = of_entry.steps[index];
        steps = std::max(steps, loop.size);
      }
    }
  }

  std::vector<Variant> found = {{}};
  const auto add = [&](std::span<const IndexNames* const> instead) {
    Variant variant = variant_of(part, cuts, instead);
    if (std::ranges::find(found, variant) == found.end()) found.push_back(std::move(variant));
  };
  const std::size_t axes = base_.axes.size();
  for (std::size_t axis = 0; axis < axes; ++axis)
    for (const IndexNames& list : lists_[axis]) {
      std::vector<const IndexNames*> instead(axes, nullptr);
      instead[axis] = &list;
      add(instead);
      if (axes > 1 && axis == 0) add(std::vector<const IndexNames*>(axes, &list));
    }
  return found;
}

std::vector<Exception> PartVariants::in_part(const train::Part& part, const Variant& variant) const {
  std::vector<Exception> exceptions;
  for (const Variant::Said& said : variant.said) {
    const train::Entry& entry = part.entries[said.entry];
    exceptions.push_back({graph_.path(entry.scope, entry.label), said.axis, said.index});
  }
  return exceptions;
}

std::vector<Exception> PartVariants::in_kind(std::size_t kind, const Variant& variant) const {
  std::vector<Exception> exceptions;
  for (const Variant::Said& said : variant.said)
    for (const train::Part& part : chain_.parts) {
      if (part.kind != kind) continue;
      const train::Entry& entry = part.entries[said.entry];
      const bool only_here = kinds_with_[entry.label.value].size() == 1;
      exceptions.push_back(
          {only_here ? std::string(graph_.text(entry.label)) : graph_.path(entry.scope, entry.label),
           said.axis, said.index});
      if (only_here) break;
    }
  return exceptions;
}

std::set<std::string, std::less<>> tensor_names(const Graph& graph) {
  std::set<std::string, std::less<>> names;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    const Symbol label = node.node().label;
    if (ops::is_source(node.op())) {
      names.emplace(node.word(0));
    } else if (label.valid()) {
      names.emplace(graph.text(label));
      names.insert(graph.path(node.node().scope, label));
    }
  }
  return names;
}

Distribution restricted(const Distribution& distribution, const Graph& graph) {
  std::vector<bool> used(graph.symbols().size());
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    for (const plan::Dim& dim : graph.type(plan::ValueId(v)).dims) used[dim.index.value] = true;
  Distribution made = distribution;
  for (distribute::AxisUse& use : made.axes)
    std::erase_if(use.slice, [&](const std::string& index) {
      const Symbol symbol = graph.symbols().find(index);
      return !symbol.valid() || !used[symbol.value];
    });
  if (!made.exceptions.empty()) {
    const auto names = tensor_names(graph);
    std::erase_if(made.exceptions,
                  [&](const Exception& exception) { return !names.contains(exception.tensor); });
  }
  return made;
}

}  // namespace weft::search
