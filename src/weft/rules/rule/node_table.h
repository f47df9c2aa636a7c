// weft/rules/rule/node_table.h -- finds a node by what it computes: operator, attributes and what it reads.
//
// Nodes are found by what they read now, which is not what they read when they were added: so the table is
// told the inputs, keeps only hashes, and hands out candidates. Several nodes may have one key, all but one
// of them dead.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "weft/base/inline_vector.h"
#include "weft/plan/graph/graph.h"

namespace weft::rule {

// An operator's attributes as plain words: equal words, equal attributes. Of nodes of one graph.
using Words = InlineVector<std::uint64_t, 8>;
Words words_of(const plan::Node& node);
// Of attributes as code states them. Nothing when a node of this graph cannot have them: a name that it never
// saw, or a value of the wrong kind.
std::optional<Words> words_of(const plan::Graph& graph, const plan::Operator& op,
                              std::span<const plan::AttributeValue> attributes);

class NodeTable {
 public:
  static std::uint64_t hash(const plan::Operator& op, const Words& words);

  // `function` is the hash of the node's operator and attributes.
  void insert(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node);
  void erase(std::uint64_t function, std::span<const plan::ValueId> inputs, plan::NodeId node);

  // Calls visit(node) for every node that may have this key, in no order.
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
