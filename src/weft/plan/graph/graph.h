// weft/plan/graph/graph.h -- the plan graph: nodes that make values, in execution order.
//
//   %0 = input {name=x, type=f32[b=64,d=784]}
//   %1 = parameter {name=w, type=f32[d=784,f=512], init=normal, a=0, b=0.02}
//   %2 = contract %0, %1 {to=[b,f]} : f32[b=64,f=512] @h
//   return h=%2
//
// Nodes and values live in the graph's arena and are referred to by id. Nodes are only appended,
// and only after the nodes that make their inputs. So id order is a legal execution order, and a
// graph has no cycles. Views and spans that a graph returns stay valid while it grows.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/ids.h"
#include "weft/base/pool.h"
#include "weft/base/result.h"
#include "weft/base/symbols.h"
#include "weft/plan/graph/attribute.h"
#include "weft/plan/graph/operator.h"
#include "weft/plan/graph/type.h"
#include "weft/plan/graph/when.h"

namespace weft::plan {

struct NodeTag;
struct ValueTag;
struct ScopeTag;
using NodeId = Id<NodeTag>;
using ValueId = Id<ValueTag>;
using ScopeId = Id<ScopeTag>;

struct Value {
  TypeId type;
  NodeId producer;
  std::uint32_t result = 0;  // which of the producer's results this is
};

// Where in the model's text a node comes from: block.3 is scope `block`, iteration 3.
struct Scope {
  ScopeId parent;  // invalid at the top
  Symbol name;
  std::int32_t iteration = -1;  // -1: not repeated

  friend bool operator==(const Scope&, const Scope&) = default;
};

// Layers nest at most this deep, so walking up a node's scopes is always short.
constexpr int kDeepestScope = 64;

struct Node {
  const Operator* op = nullptr;
  std::span<const ValueId> inputs;
  std::span<const Attribute> attributes;
  ValueId first_result;
  std::uint32_t result_count = 0;
  Symbol label;  // the name of the WITH entry it computes, if any
  ScopeId scope;
  When when;  // phase within a step
};

// A plan returns results, and the next values of parameters and states.
struct Output {
  Symbol name;  // of an update: "next STATE"
  ValueId value;
  Symbol updates;  // the parameter or state; invalid: a result

  friend bool operator==(const Output&, const Output&) = default;
};

class NodeView;

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph clone() const;

  std::string name;

  Symbol symbol(std::string_view text) { return symbols_.intern(text); }
  std::string_view text(Symbol symbol) const { return symbols_.text(symbol); }
  const Symbols& symbols() const { return symbols_; }

  // Fails when the type is too large or names an index twice.
  Result<TypeId> intern_type(DType dtype, std::span<const Dim> dims);
  Type type(TypeId id) const { return types_[id.value]; }
  Type type(ValueId id) const { return types_[values_[id.value].type.value]; }

  // Appends a node after inferring its types; on failure the graph is unchanged. `attributes` are
  // in the operator's order; missing ones at the end take their defaults.
  Result<NodeId> add(const Operator& op, std::span<const ValueId> inputs,
                     std::span<const AttributeValue> attributes = {});
  // The same for an operator with one result.
  Result<ValueId> add_value(const Operator& op, std::span<const ValueId> inputs,
                            std::span<const AttributeValue> attributes = {});

  // The label, scope and phase of nodes added from now on.
  void set_label(Symbol label) { label_ = label; }
  void set_scope(ScopeId scope) { scope_ = scope; }
  void set_when(const When& when) { when_ = when; }
  Symbol label() const { return label_; }
  ScopeId scope() const { return scope_; }
  const When& when() const { return when_; }
  ScopeId add_scope(const Scope& scope);
  const Scope& scope(ScopeId id) const { return scopes_[id.value]; }
  std::size_t scope_count() const { return scopes_.size(); }
  // "block.3.scores" for a label inside a scope; names that are not plain words are quoted.
  std::string path(ScopeId scope, Symbol label) const;

  std::size_t node_count() const { return nodes_.size(); }
  std::size_t value_count() const { return values_.size(); }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  Phase phase(NodeId id) const { return nodes_[id.value].when.phase; }
  bool has(Phase phase) const;  // whether a node has that phase
  const Value& value(ValueId id) const { return values_[id.value]; }
  NodeView view(NodeId id) const;
  ValueId result(NodeId id, std::size_t k = 0) const {
    return ValueId(nodes_[id.value].first_result.value + k);
  }

  void add_output(Symbol output_name, ValueId value) { outputs_.push_back({output_name, value, {}}); }
  // The same output with another value, for a copy whose symbols have the same numbers. For other
  // copies see Transplant.
  void add_output(const Output& like, ValueId value) { outputs_.push_back({like.name, value, like.updates}); }
  void add_update(std::string_view state, ValueId next);
  // The name of the parameter or state that an output updates; empty: none.
  std::string_view updated(const Output& output) const {
    return output.updates.valid() ? text(output.updates) : std::string_view();
  }
  void clear_outputs() { outputs_.clear(); }
  std::span<const Output> outputs() const { return outputs_; }

 private:
  Result<Attribute> keep(const AttributeSpec& spec, const AttributeValue& value, const Operator& op);

  Symbols symbols_;
  std::vector<Type> types_;
  std::vector<std::uint32_t> type_slots_;  // open addressing into types_
  std::vector<std::uint64_t> type_hashes_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<Scope> scopes_;
  std::vector<Output> outputs_;
  Symbol label_;
  ScopeId scope_;
  When when_;

  Pool<Dim> dims_;
  Pool<ValueId> inputs_;
  Pool<Attribute> attributes_;
  Pool<Symbol> indices_;
};

// A node together with its graph, as operators read it.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id) : graph_(&graph), id_(id) {}

  const Graph& graph() const { return *graph_; }
  NodeId id() const { return id_; }
  const Node& node() const { return graph_->node(id_); }
  const Operator& op() const { return *node().op; }
  Phase phase() const { return node().when.phase; }

  std::size_t input_count() const { return node().inputs.size(); }
  std::size_t result_count() const { return node().result_count; }
  ValueId input(std::size_t i) const { return node().inputs[i]; }
  ValueId result(std::size_t k) const { return graph_->result(id_, k); }
  Type input_type(std::size_t i) const { return graph_->type(input(i)); }
  Type result_type(std::size_t k) const { return graph_->type(result(k)); }

  // Attributes by their position in the operator's list.
  std::int64_t integer(std::size_t k) const { return node().attributes[k].integer; }
  double real(std::size_t k) const { return node().attributes[k].real; }
  Symbol symbol(std::size_t k) const { return Symbol(node().attributes[k].id); }
  std::string_view word(std::size_t k) const { return graph_->text(symbol(k)); }
  std::span<const Symbol> indices(std::size_t k) const {
    return {node().attributes[k].indices, node().attributes[k].count};
  }
  DType dtype(std::size_t k) const { return static_cast<DType>(node().attributes[k].id); }
  Type type(std::size_t k) const { return graph_->type(TypeId(node().attributes[k].id)); }

  std::string_view text(Symbol symbol) const { return graph_->text(symbol); }

 private:
  const Graph* graph_;
  NodeId id_;
};

inline NodeView Graph::view(NodeId id) const { return NodeView(*this, id); }

}  // namespace weft::plan
