// weft/rules/equation/equal_terms.h -- a small e-graph: terms, some of which are known to be equal.
//
//   class 5 = { ewadd(3, 4), ewadd(4, 3)', smul(7, 2) }      a node's operands are classes, not terms
//
// Merging two classes also merges the nodes that then have equal operands (congruence). Commutative
// nodes keep their operands sorted. Every class has a shape, and ill-typed nodes are not added. Two
// classes with the same sizes but different joints may hold equal numbers, yet a split would
// distinguish them: they are `equal` but not merged.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// Interns operations, so that comparing them is comparing numbers.
class Vocabulary {
 public:
  std::uint32_t find(const Operation& operation);  // adds it if it is new
  const Operation& operator[](std::uint32_t word) const { return words_[word]; }
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<Operation> words_;
};

class EqualTerms {
 public:
  using ClassId = std::uint32_t;
  struct Node {
    std::uint32_t word = 0;
    std::int32_t result = 0;
    std::vector<ClassId> operands;

    friend auto operator<=>(const Node&, const Node&) = default;
  };

  EqualTerms(const Vocabulary& words, std::int32_t ranks, std::int32_t most_nodes);

  ClassId add_input(Shape shape, bool alike_on_ranks);
  // nullopt if the node is ill-typed or there are too many nodes.
  std::optional<ClassId> add(Node node);
  void merge(ClassId a, ClassId b);  // only marks them as equal if their shapes differ in joints
  // Merges nodes with equal operands until none are left (congruence closure).
  void close();

  ClassId find(ClassId id) const;
  bool equal(ClassId a, ClassId b) const { return root(numbers_, a) == root(numbers_, b); }
  bool alike_on_ranks(ClassId id) const { return alike_[find(id)]; }
  std::span<const Node> nodes(ClassId id) const { return members_[id]; }  // REQUIRES: closed, id = find(id)
  std::size_t classes() const { return parents_.size(); }
  const Vocabulary& words() const { return words_; }
  bool full() const { return static_cast<std::int32_t>(ids_.size()) >= most_nodes_; }

 private:
  static ClassId root(const std::vector<ClassId>& parents, ClassId id) {
    while (parents[id] != id) id = parents[id];
    return id;
  }
  ClassId new_class(std::optional<Shape> shape, bool alike_on_ranks);
  void tidy(Node& node) const;

  const Vocabulary& words_;
  std::int32_t ranks_, most_nodes_;
  std::vector<ClassId> parents_, numbers_;    // union-find: merged classes; classes with equal numbers
  std::vector<std::optional<Shape>> shapes_;  // nullopt for constants
  std::vector<bool> alike_;
  std::vector<std::vector<Node>> members_;
  std::map<Node, ClassId> ids_;
};

}  // namespace weft::equation
