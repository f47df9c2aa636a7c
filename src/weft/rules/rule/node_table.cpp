#include "weft/rules/rule/node_table.h"

#include <bit>

#include "weft/base/hash.h"

namespace weft::rule {
namespace {

using plan::AttributeKind;

void append_list(Words& words, std::span<const Symbol> list) {
  words.push_back(list.size());
  for (const Symbol symbol : list) words.push_back(symbol.value);
}

// The default that Graph::add uses for a missing attribute.
bool append_default(Words& words, const plan::Graph& graph, const plan::AttributeSpec& spec) {
  if (spec.required) return false;
  switch (spec.kind) {
    case AttributeKind::integer:
      words.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(spec.number)));
      return true;
    case AttributeKind::real: words.push_back(std::bit_cast<std::uint64_t>(spec.number)); return true;
    case AttributeKind::word: {
      const Symbol word = graph.symbols().find(spec.word);
      words.push_back(word.value);
      return word.valid();
    }
    case AttributeKind::indices: words.push_back(0); return true;
    default: return false;
  }
}

bool append(Words& words, AttributeKind kind, const plan::AttributeValue& value) {
  if (const auto* list = std::get_if<std::span<const Symbol>>(&value)) {
    append_list(words, *list);
    return kind == AttributeKind::indices;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    words.push_back(kind == AttributeKind::real ? std::bit_cast<std::uint64_t>(static_cast<double>(*integer))
                                                : static_cast<std::uint64_t>(*integer));
    return kind == AttributeKind::integer || kind == AttributeKind::real;
  }
  if (const auto* real = std::get_if<double>(&value)) {
    words.push_back(std::bit_cast<std::uint64_t>(*real));
    return kind == AttributeKind::real;
  }
  if (const auto* symbol = std::get_if<Symbol>(&value)) {
    words.push_back(symbol->value);
    return kind == AttributeKind::word || kind == AttributeKind::index;
  }
  if (const auto* dtype = std::get_if<plan::DType>(&value)) {
    words.push_back(static_cast<std::uint64_t>(*dtype));
    return kind == AttributeKind::dtype;
  }
  words.push_back(std::get<plan::TypeId>(value).value);
  return kind == AttributeKind::type;
}

}  // namespace

Words words_of(const plan::Node& node) {
  Words words;
  const std::span<const plan::AttributeSpec> specs = node.op->attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const plan::Attribute& attribute = node.attributes[k];
    switch (specs[k].kind) {
      case AttributeKind::integer: words.push_back(static_cast<std::uint64_t>(attribute.integer)); break;
      case AttributeKind::real: words.push_back(std::bit_cast<std::uint64_t>(attribute.real)); break;
      case AttributeKind::indices: append_list(words, {attribute.indices, attribute.count}); break;
      default: words.push_back(attribute.id);
    }
  }
  return words;
}

std::optional<Words> words_of(const plan::Graph& graph, const plan::Operator& op,
                              std::span<const plan::AttributeValue> attributes) {
  Words words;
  const std::span<const plan::AttributeSpec> specs = op.attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const bool stated = k < attributes.size() && !std::holds_alternative<std::monostate>(attributes[k]);
    if (!(stated ? append(words, specs[k].kind, attributes[k]) : append_default(words, graph, specs[k])))
      return std::nullopt;
  }
  return words;
}

std::uint64_t NodeTable::hash(const plan::Operator& op, const Words& words) {
  // Hashing the address is fine: the hash only gives candidates and never affects results.
  std::uint64_t state = mix(static_cast<std::uint64_t>(std::hash<const plan::Operator*>()(&op)));
  for (const std::uint64_t word : words) state = mix(state ^ word) + word;
  return state;
}

std::uint64_t NodeTable::key(std::uint64_t function, std::span<const plan::ValueId> inputs) {
  std::uint64_t state = function;
  for (const plan::ValueId input : inputs) state = mix(state + input.value + 1);
  return state;
}

void NodeTable::insert(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node) {
  nodes_.emplace(key(function, inputs), node);
}

void NodeTable::erase(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node) {
  const auto [first, last] = nodes_.equal_range(key(function, inputs));
  for (auto at = first; at != last; ++at)
    if (at->second == node) {
      nodes_.erase(at);
      return;
    }
}

}  // namespace weft::rule
