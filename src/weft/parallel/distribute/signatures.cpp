#include "weft/parallel/distribute/signatures.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "weft/base/hash.h"
#include "weft/plan/ops/sliding.h"

namespace weft::distribute {
namespace {

using plan::AttributeKind;
using Key = std::vector<std::uint64_t>;

struct HashKey {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = key.size();
    for (const std::uint64_t word : key) hash = mix(hash ^ word);
    return hash;
  }
};

// Everything that a signature depends on, as integers.
void fill_key(const plan::Node& node, const plan::Graph& graph, Key& key) {
  key.clear();
  key.push_back(std::bit_cast<std::uintptr_t>(node.op));
  key.push_back(node.inputs.size());
  for (const plan::ValueId input : node.inputs) key.push_back(graph.value(input).type.value);
  const std::span<const plan::AttributeSpec> specs = node.op->attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const plan::Attribute& attribute = node.attributes[k];
    switch (specs[k].kind) {
      case AttributeKind::integer: key.push_back(static_cast<std::uint64_t>(attribute.integer)); break;
      case AttributeKind::real: key.push_back(std::bit_cast<std::uint64_t>(attribute.real)); break;
      case AttributeKind::indices:
        key.push_back(attribute.count);
        for (std::uint32_t i = 0; i < attribute.count; ++i) key.push_back(attribute.indices[i].value);
        break;
      case AttributeKind::word:
      case AttributeKind::index:
      case AttributeKind::dtype:
      case AttributeKind::type: key.push_back(attribute.id); break;
    }
  }
}

}  // namespace

Signatures::Signatures(const plan::Graph& graph) {
  std::unordered_map<Key, std::uint32_t, HashKey> known;
  Key key;
  kinds_.reserve(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    fill_key(node.node(), graph, key);
    const auto [found, fresh] = known.try_emplace(key, static_cast<std::uint32_t>(signatures_.size()));
    if (fresh)
      signatures_.push_back(std::make_unique<const plan::Signature>(ops::signature_with_borders(node)));
    kinds_.push_back(found->second);
  }
}

bool is_elementwise(const plan::NodeView& node, const plan::Signature& signature) {
  return ops::sliding_loops(node).empty() && std::ranges::all_of(signature.loops, [](const plan::Loop& loop) {
           return loop.role == plan::Role::parallel;
         });
}

bool bears(const plan::NodeView& node, const plan::Loop& loop, Symbol index) {
  if (loop.index == index) return true;
  for (std::size_t i = 0; i < loop.operands.size(); ++i)
    if (const int dim = loop.operands[i];
        dim >= 0 && node.input_type(i).dims[static_cast<std::size_t>(dim)].index == index)
      return true;
  for (std::size_t k = 0; k < loop.results.size(); ++k)
    if (const int dim = loop.results[k];
        dim >= 0 && node.result_type(k).dims[static_cast<std::size_t>(dim)].index == index)
      return true;
  return false;
}

bool has_operand(const plan::Loop& loop) {
  return std::ranges::any_of(loop.operands, [](std::int8_t dim) { return dim >= 0; });
}

}  // namespace weft::distribute
