// weft/plan/graph/transplant.h -- copies nodes from one plan to another.
//
// Each graph numbers its symbols and types independently. A transplant caches the mapping between
// two graphs, so that copying a node costs as much as adding it.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

class Transplant {
 public:
  // Maps an index of `from` to its name in `to`; called once per index.
  using NameIndex = std::function<Symbol(Symbol)>;

  // Without `name_index`, indices keep their names. REQUIRES: both graphs outlive it; `from` may
  // grow meanwhile.
  Transplant(const Graph& from, Graph& to, NameIndex name_index = {})
      : from_(&from), to_(&to), name_index_(std::move(name_index)) {}

  Symbol symbol(Symbol symbol);
  Symbol index(Symbol index);
  TypeId type(TypeId type);
  // Adds the same output with `value`, a value of `to`.
  void output(const Output& output, ValueId value);

  // Adds a node with the same operator, attributes and phase over `inputs`, which are values of
  // `to`. The caller sets label and scope. Fails if the operator rejects the inputs, never if their
  // types are those of the original's inputs. `last` replaces the last attribute, such as a
  // source's layout.
  Result<NodeId> node(NodeId node, std::span<const ValueId> inputs, const AttributeValue* last = nullptr);
  // The same in another phase.
  Result<NodeId> node_at(const When& when, NodeId node, std::span<const ValueId> inputs,
                         const AttributeValue* last = nullptr);

 private:
  AttributeValue attribute(AttributeKind kind, const Attribute& attribute, std::vector<Symbol>& list);

  const Graph* from_;
  Graph* to_;
  NameIndex name_index_;
  std::vector<Symbol> symbols_, indices_;
  std::vector<TypeId> types_;
  std::vector<std::vector<Symbol>> lists_;  // index lists of the node being added, reused
  std::vector<AttributeValue> values_;
};

}  // namespace weft::plan
