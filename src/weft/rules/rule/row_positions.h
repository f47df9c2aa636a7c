// weft/rules/rule/row_positions.h -- integers that name rows, classes and positions.
//
//   gather(p, x, along=n)                    an element of p names a row of x
//   cross-entropy(x, label, over=v)          a label names a class
//   equal(p, position(along=n, size=64))     a position is the row's own number
//
// Such a number may pass through a low-precision dtype: 257 is 256 in bf16. Tensors large enough to
// show this are slow to run, so row numbers are offset instead. The instance gets one more input,
// the offset, which is added to every position and subtracted from every number that names a row.
// That is a window of a large tensor.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/instance.h"

namespace weft::rule {

// The operand of the operator that names rows, or kNoRowOperand.
constexpr std::size_t kNoRowOperand = ~std::size_t{0};
std::size_t row_operand(const plan::Operator& op);
// The result that numbers rows, or kNoRowOperand.
std::size_t row_result(const plan::Operator& op);

struct RowUses {
  std::vector<bool> inputs;  // by input: whether it names rows, directly or through casts and arithmetic
  std::int64_t largest = 1;  // largest size of an index
  bool any = false;          // whether a node names or numbers rows
};
RowUses row_uses(const plan::Graph& graph);

// The instance with rows offset by its first input, on one device, where communication does
// nothing; nullopt if no node names or numbers rows.
std::optional<RuleInstance> with_row_offset(const RuleInstance& instance);

// Sizes of the rule that bound its positions: `size(x, n)` of gather(p, x, along=n). nullopt if one
// cannot be expressed.
std::optional<std::vector<Number>> row_bounds(const Rule& rule);

}  // namespace weft::rule
