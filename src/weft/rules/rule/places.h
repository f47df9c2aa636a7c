// weft/rules/rule/places.h -- whole numbers that name rows, classes and positions.
//
//   gather(p, x, along=n)                    an element of p names a row of x
//   cross-entropy(x, label, over=v)          a label names a class
//   equal(p, position(along=n, size=64))     a position is a row's own number
//
// Such a number may pass through a dtype of few digits: 257 is 256 in bf16. Tensors large enough to show that are
// slow to run, so the same rows are counted from far out: the instance gets one input more, from where to count, which
// is added to every position and taken from every number that names a row. That is a window of a large tensor.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/instance.h"

namespace weft::rule {

// Which operand of the operator names rows; none has this place.
constexpr std::size_t kNoPlace = ~std::size_t{0};
std::size_t place_operand(const plan::Operator& op);
// Which result numbers rows.
std::size_t place_result(const plan::Operator& op);

struct PlaceUses {
  std::vector<bool> inputs;  // by input: whether it names rows, by way of casts and arithmetic or not
  std::int64_t largest = 1;  // size of an index
  bool any = false;          // a node that names or numbers rows
};
PlaceUses place_uses(const plan::Graph& graph);

// The instance as counted from its first input, on one device, where communication changes nothing; nothing where no
// node names or numbers rows.
std::optional<RuleInstance> counted_from_afar(const RuleInstance& instance);

// Sizes of the rule that bound its positions: `size(x, n)` of gather(p, x, along=n). None where one cannot be said.
std::optional<std::vector<Number>> place_bounds(const Rule& rule);

}  // namespace weft::rule
