// weft/rules/rule/evaluate_number.h -- evaluates the numbers of a rule at a match.
//
//   end=size(v, n) + size(w, m)    with v=%1 : f32[d=784,f=512], w=%2 : f32[d=784,g=256], n=f, m=g:  768
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Where to look up a rule's variables and values.
struct Place {
  const plan::Graph& graph;
  const Rule& rule;
  const Bindings& bindings;
  std::span<const plan::ValueId> left;         // values of the left side built so far
  const plan::Mesh* mesh = nullptr;            // for ranks(a)
  std::span<const plan::Layout> layouts = {};  // by value of the graph, for replicated(x)
  std::int64_t further = 0;  // added to sizes of single indices: the rest of a windowed tensor
};

// nullopt on overflow, division by zero, or an index that the value lacks.
std::optional<std::int64_t> evaluate(const Number& number, const Place& place);

// Applies the operation to `a` and `b`. REQUIRES: kind is arithmetic.
std::optional<std::int64_t> combine(Number::Kind kind, std::int64_t a, std::int64_t b);

}  // namespace weft::rule
