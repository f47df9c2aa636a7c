// weft/plan/graph/operator.h -- the operator interface that the plan graph needs.
//
// The operators themselves are in ops/, one file each. graph/ sees them only through this
// interface, so that reading, printing, hashing and verifying a plan name no operator.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/base/result.h"
#include "weft/plan/graph/attribute.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/graph/work.h"

namespace weft::plan {

class Graph;
class NodeView;

// Collects the types that infer() finds for a node's results.
class ResultTypes {
 public:
  explicit ResultTypes(Graph& graph) : graph_(graph) {}

  // Fails if the value would be larger than kLargestValueBytes or names an index twice.
  Status add(DType dtype, std::span<const Dim> dims);
  Status add(const Type& type) { return add(type.dtype, type.dims); }
  std::span<const TypeId> types() const { return types_; }

 private:
  Graph& graph_;
  InlineVector<TypeId, 4> types_;
};

class Operator {
 public:
  virtual ~Operator() = default;

  virtual std::string_view name() const = 0;  // kebab-case: "layer-norm"
  virtual std::span<const AttributeSpec> attributes() const { return {}; }
  virtual std::size_t min_inputs() const = 0;
  virtual std::size_t max_inputs() const = 0;

  // Adds the types of the results, or fails with what is wrong with the operands. Messages name
  // indices and sizes; the caller adds the node.
  virtual Status infer(const NodeView& node, ResultTypes& results) const = 0;

  // REQUIRES, for all functions below: the node's types were inferred.
  virtual Signature signature(const NodeView& node) const = 0;
  virtual Work work(const NodeView& node) const = 0;

  // True if the result is the operand's memory under other index names or sizes.
  virtual bool is_view() const { return false; }
};

// The operators that a reader of plan text accepts, by name.
class OperatorSet {
 public:
  explicit OperatorSet(std::span<const Operator* const> operators);

  const Operator* find(std::string_view name) const;  // null if there is none
  std::span<const Operator* const> all() const { return operators_; }
  std::span<const std::string_view> names() const { return names_; }

 private:
  std::vector<const Operator*> operators_;
  std::vector<std::string_view> names_;
  Symbols index_;  // the i-th operator's name is symbol i
};

}  // namespace weft::plan
