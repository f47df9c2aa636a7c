#include "weft/translate/recipe/model_shape.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "weft/plan/ops/operators.h"

namespace weft::recipe {
namespace {

// How parameters use an index.
struct Use {
  std::int64_t size = 0, parameters = 0;
  bool in_tensors = false;  // in a tensor with two more indices: wq[d, h, e]
};

struct Parameters {
  std::map<std::string, Use> uses;
  std::vector<std::vector<std::string>> indices;  // per parameter
  bool reads_tokens = false;
};

Parameters parameters_of(const plan::Graph& graph, const distribute::IndexRoles& roles) {
  Parameters found;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    const bool is_input = &node.op() == &ops::input();
    if (!is_input && &node.op() != &ops::parameter()) continue;
    const plan::Type type = node.result_type(0);
    std::vector<std::string> names;
    for (const plan::Dim& dim : type.dims) names.emplace_back(graph.text(dim.index));
    if (is_input) {
      const bool in_order = std::ranges::any_of(
          names, [&](const std::string& name) { return std::ranges::count(roles.sequence, name) > 0; });
      found.reads_tokens = found.reads_tokens || (in_order && plan::is_integer(type.dtype));
      continue;
    }
    for (const plan::Dim& dim : type.dims) {
      Use& use = found.uses[std::string(graph.text(dim.index))];
      use.size = std::max(use.size, dim.size);
      ++use.parameters;
      use.in_tensors = use.in_tensors || type.dims.size() > 2;
    }
    found.indices.push_back(std::move(names));
  }
  return found;
}

}  // namespace

ModelShape model_shape(const plan::Graph& graph, const distribute::IndexRoles& roles, std::int64_t layers) {
  const Parameters parameters = parameters_of(graph, roles);
  ModelShape shape;
  // The launchers' terms apply only to language models.
  if (layers == 0 || !parameters.reads_tokens || parameters.uses.empty()) return shape;
  const auto& uses = parameters.uses;
  const auto hidden =
      std::ranges::max_element(uses, {}, [](const auto& use) { return use.second.parameters; });
  std::string heads, inner, words;
  const auto parameters_with = [&](const std::string& index) { return uses.at(index).parameters; };
  for (const std::string& index : roles.model) {
    if (!uses.contains(index) || index == hidden->first) continue;
    const bool in_layers = parameters_with(index) >= layers;
    const bool of_experts = std::ranges::any_of(parameters.indices, [&](const auto& names) {
      return std::ranges::count(names, index) > 0 && std::ranges::any_of(roles.expert, [&](const auto& x) {
               return std::ranges::count(names, x) > 0;
             });
    });
    if (!in_layers) {
      if (words.empty() || uses.at(index).size > uses.at(words).size) words = index;
    } else if (uses.at(index).in_tensors && !of_experts) {
      if (heads.empty()) heads = index;
    } else if (inner.empty() || parameters_with(index) > parameters_with(inner)) {
      inner = index;
    }
  }
  const auto size_of = [&](const std::string& index) { return index.empty() ? 0 : uses.at(index).size; };
  shape.layers = layers;
  shape.hidden = hidden->second.size;
  shape.heads = size_of(heads);
  for (const distribute::FurtherIndex& one : roles.further)
    if (one.beside == heads && uses.contains(one.index) && uses.at(one.index).parameters >= layers) {
      shape.key_heads = shape.heads;
      shape.heads *= size_of(one.index);
      break;
    }
  shape.inner = size_of(inner);
  shape.words = size_of(words);
  if (!roles.expert.empty() && uses.contains(roles.expert.front()))
    shape.experts = size_of(roles.expert.front());
  return shape;
}

}  // namespace weft::recipe
