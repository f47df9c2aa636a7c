#include "weft/rules/equation/equal_terms.h"

#include <algorithm>
#include <utility>

#include "weft/rules/equation/canonical.h"

namespace weft::equation {

std::uint32_t Vocabulary::find(const Operation& operation) {
  const Operation plain = bare(operation);
  const auto found = std::find(words_.begin(), words_.end(), plain);
  if (found != words_.end()) return static_cast<std::uint32_t>(found - words_.begin());
  words_.push_back(plain);
  return static_cast<std::uint32_t>(words_.size() - 1);
}

EqualTerms::EqualTerms(const Vocabulary& words, std::int32_t ranks, std::int32_t most_nodes)
    : words_(words), ranks_(ranks), most_nodes_(most_nodes) {}

EqualTerms::ClassId EqualTerms::find(ClassId id) const { return root(parents_, id); }

EqualTerms::ClassId EqualTerms::new_class(std::optional<Shape> shape, bool alike_on_ranks) {
  const ClassId id = static_cast<ClassId>(parents_.size());
  parents_.push_back(id);
  numbers_.push_back(id);
  shapes_.push_back(std::move(shape));
  alike_.push_back(alike_on_ranks);
  members_.emplace_back();
  return id;
}

EqualTerms::ClassId EqualTerms::add_input(Shape shape, bool alike_on_ranks) {
  shape.joints.resize(shape.sizes.size());
  return new_class(std::move(shape), alike_on_ranks);
}

void EqualTerms::tidy(Node& node) const {
  for (ClassId& operand : node.operands) operand = find(operand);
  if (is_commutative(words_[node.word].verb)) std::sort(node.operands.begin(), node.operands.end());
}

std::optional<EqualTerms::ClassId> EqualTerms::add(Node node) {
  tidy(node);
  if (const auto found = ids_.find(node); found != ids_.end()) return find(found->second);
  if (full()) return std::nullopt;

  const Operation& operation = words_[node.word];
  std::vector<Shape> operands;
  bool known = !is_constant(operation.verb), alike = true;
  for (const ClassId operand : node.operands) {
    known = known && shapes_[operand].has_value();
    if (known) operands.push_back(*shapes_[operand]);
    alike = alike && alike_[operand];
  }
  std::optional<Shape> shape;
  if (known) {
    auto shapes = infer(operation, operands, ranks_);
    if (!shapes.ok() || static_cast<std::size_t>(node.result) >= shapes->size()) return std::nullopt;
    shape = std::move((*shapes)[static_cast<std::size_t>(node.result)]);
    shape->joints.resize(shape->sizes.size());
  }
  const ClassId id = new_class(std::move(shape), is_alike(operation.verb, operation.details, alike));
  members_[id].push_back(node);
  ids_.emplace(std::move(node), id);
  return id;
}

void EqualTerms::merge(ClassId a, ClassId b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  const auto &left = shapes_[a], &right = shapes_[b];
  const bool known = left && right;
  if (known && left->sizes != right->sizes) return;
  if (const ClassId x = root(numbers_, a), y = root(numbers_, b); x != y)
    numbers_[std::max(x, y)] = std::min(x, y);
  if (known && left->joints != right->joints) return;
  if (!left) shapes_[a] = right;
  alike_[a] = alike_[a] || alike_[b];
  parents_[b] = a;
  for (Node& node : members_[b]) members_[a].push_back(std::move(node));
  members_[b].clear();
}

void EqualTerms::close() {
  for (bool changed = true; changed;) {
    changed = false;
    std::map<Node, ClassId> ids;
    std::vector<std::pair<ClassId, ClassId>> equal;
    for (const auto& [node, id] : ids_) {
      Node tidied = node;
      tidy(tidied);
      const auto [place, fresh] = ids.emplace(std::move(tidied), find(id));
      if (!fresh && find(place->second) != find(id)) equal.emplace_back(place->second, id);
    }
    ids_ = std::move(ids);
    for (const auto& [a, b] : equal) {
      if (find(a) == find(b)) continue;
      const bool before = find(a) == find(b);
      merge(a, b);
      changed = changed || (find(a) == find(b)) != before;
    }
  }
  for (auto& members : members_) members.clear();
  for (const auto& [node, id] : ids_) members_[find(id)].push_back(node);
}

}  // namespace weft::equation
