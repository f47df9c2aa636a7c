// weft/plan/graph/transplant.h -- nodes of one plan, made again in another.
//
// Graphs number their symbols and types each for themselves; a transplant knows which of the one is which of
// the other, so that copying a node costs as much as adding it.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

class Transplant {
 public:
  // What an index of `from` is called in `to`; asked once for each.
  using NameIndex = std::function<Symbol(Symbol)>;

  // Without `name_index`, indices keep their names. REQUIRES: both outlive it; `from` may grow meanwhile.
  Transplant(const Graph& from, Graph& to, NameIndex name_index = {})
      : from_(&from), to_(&to), name_index_(std::move(name_index)) {}

  Symbol symbol(Symbol symbol);
  Symbol index(Symbol index);
  TypeId type(TypeId type);
  // Adds the same output, which is `value` of `to`.
  void output(const Output& output, ValueId value);

  // The same operator and attributes over `inputs`, which are values of `to`, in the same phase; label and
  // scope are the caller's to set. Fails when the operator refuses them; never when their types are those of
  // the node's own.
  // `last` stands in for its last attribute, such as a source's layout.
  Result<NodeId> node(NodeId node, std::span<const ValueId> inputs, const AttributeValue* last = nullptr);
  // The same to run at another time.
  Result<NodeId> node_at(const When& when, NodeId node, std::span<const ValueId> inputs,
                         const AttributeValue* last = nullptr);

 private:
  AttributeValue attribute(AttributeKind kind, const Attribute& attribute, std::vector<Symbol>& list);

  const Graph* from_;
  Graph* to_;
  NameIndex name_index_;
  std::vector<Symbol> symbols_, indices_;
  std::vector<TypeId> types_;
  std::vector<std::vector<Symbol>> lists_;  // of the node being made, kept for the next
  std::vector<AttributeValue> values_;
};

}  // namespace weft::plan
