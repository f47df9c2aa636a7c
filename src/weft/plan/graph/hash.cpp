#include "weft/plan/graph/hash.h"

namespace weft::plan {
namespace {

void feed_type(Hasher& hasher, const Type& type, std::span<const Digest> names) {
  hasher.number(static_cast<std::uint64_t>(type.dtype)).number(type.dims.size());
  for (const Dim& dim : type.dims)
    hasher.digest_of(names[dim.index.value]).number(static_cast<std::uint64_t>(dim.size));
}

void feed_attribute(Hasher& hasher, const Graph& graph, AttributeKind kind, const Attribute& attribute,
                    std::span<const Digest> names) {
  switch (kind) {
    case AttributeKind::integer: hasher.number(static_cast<std::uint64_t>(attribute.integer)); break;
    case AttributeKind::real: hasher.real(attribute.real); break;
    case AttributeKind::word:
    case AttributeKind::index: hasher.digest_of(names[attribute.id]); break;
    case AttributeKind::indices:
      hasher.number(attribute.count);
      for (std::uint32_t i = 0; i < attribute.count; ++i) hasher.digest_of(names[attribute.indices[i].value]);
      break;
    case AttributeKind::dtype: hasher.number(attribute.id); break;
    case AttributeKind::type: feed_type(hasher, graph.type(TypeId(attribute.id)), names); break;
  }
}

// An optional word that was left out. It is not hashed, so adding such an attribute to an operator
// does not change the hashes of plans that do not use it.
bool is_omitted(const AttributeSpec& spec, const NodeView& node, std::size_t k) {
  return spec.kind == AttributeKind::word && !spec.required && spec.word.empty() && node.word(k).empty();
}

// Symbols are numbered in order of first use, which is not part of the structure: hash the texts.
std::vector<Digest> name_hashes(const Graph& graph) {
  std::vector<Digest> names(graph.symbols().size());
  for (std::size_t s = 0; s < names.size(); ++s) names[s] = Hasher().text(graph.text(Symbol(s))).digest();
  return names;
}

}  // namespace

std::vector<Digest> value_hashes(const Graph& graph) {
  const std::vector<Digest> names = name_hashes(graph);
  std::vector<Digest> hashes(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    Hasher hasher;
    hasher.text(node.op().name()).number(node.input_count());
    for (const ValueId input : node.node().inputs) hasher.digest_of(hashes[input.value]);
    const std::span<const AttributeSpec> specs = node.op().attributes();
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (!is_omitted(specs[k], node, k))
        feed_attribute(hasher, graph, specs[k].kind, node.node().attributes[k], names);
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      Hasher result = hasher;
      feed_type(result, node.result_type(k), names);
      hashes[node.result(k).value] = result.number(k).digest();
    }
  }
  return hashes;
}

Digest structural_hash(const Graph& graph) {
  const std::vector<Digest> hashes = value_hashes(graph);
  Hasher hasher;
  for (const Output& output : graph.outputs())
    hasher.text(graph.text(output.name)).digest_of(hashes[output.value.value]);
  return hasher.digest();
}

}  // namespace weft::plan
