// weft/rules/rule/node_table.h -- finds a node by operator, attributes and inputs (hash-consing).
//
// Nodes are found by their current inputs, which may differ from those they were added with. So the
// caller passes the inputs, and the table keeps only hashes and returns candidates. Several nodes
// may have the same key, all but one of them dead.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "weft/base/inline_vector.h"
#include "weft/plan/graph/graph.h"

namespace weft::rule {

// An operator's attributes as integers, comparable between nodes of one graph.
using Words = InlineVector<std::uint64_t, 8>;
Words words_of(const plan::Node& node);
// The same for attributes in Graph::add() form. nullopt if no node of this graph can have them: an
// unknown name, or a value of the wrong kind.
std::optional<Words> words_of(const plan::Graph& graph, const plan::Operator& op,
                              std::span<const plan::AttributeValue> attributes);

class NodeTable {
 public:
  static std::uint64_t hash(const plan::Operator& op, const Words& words);

  // `function` is the hash of the node's operator and attributes.
  void insert(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node);
  void erase(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node);

  // Calls visit(node) for every node that may have this key, unordered.
  template <class Visit>
  void find(std::uint64_t function, std::span<const plan::ValueId> inputs, const Visit& visit) const {
    const auto [first, last] = nodes_.equal_range(key(function, inputs));
    for (auto at = first; at != last; ++at) visit(at->second);
  }

 private:
  static std::uint64_t key(std::uint64_t function, std::span<const plan::ValueId> inputs);

  std::unordered_multimap<std::uint64_t, plan::NodeId> nodes_;
};

}  // namespace weft::rule
