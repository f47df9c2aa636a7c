// weft/program/tasks/items.h -- what an operator's own kernel can be cut into, and how it wants its operands.
//
// Items are independent: a kernel that does items [3, 7) writes what it would write for them when
// doing all. conv2d has images, cross-entropy rows, an optimizer elements.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/symbols.h"
#include "weft/plan/graph/graph.h"

namespace weft::program {

// Why no kernel of the processor computes a call of this node but the definition, element by element: "its
// elements are bf16". Empty where one does.
std::string why_by_definition(const plan::NodeView& node);

// Whether the processor's kernel for a call of this node works on f32 alone: what is bf16 or f16 of its operands
// and results is converted before and after.
bool computes_in_f32(const plan::NodeView& node);

std::int64_t item_count(const plan::NodeView& node);

// True when each item reads its own share of the operand, the shares lying one after the other.
bool operand_has_items(const plan::NodeView& node, std::size_t operand);
// True when each item writes its own share of every result, likewise; else their shares lie between each other.
bool results_have_items(const plan::NodeView& node);

// Of batch-norm: one where a channel has a run of elements to itself, else as many as a cache line holds. Of
// a convolution's weight gradient: as many as make a matrix product worth while.
std::int64_t channels_per_item(const plan::NodeView& node);

// Queries that attention goes through together: one item. Measured, as kKeyTile in device/cpu/attention.cpp is; two
// tiles of scores stay in the second cache.
constexpr std::int64_t kQueryTile = 192;

// Whether the node's kernel takes operands and writes results wherever their rows lie: attention's.
bool takes_any_rows(const plan::NodeView& node);
// Of such a node the indices that must run fastest in an operand, or in a result, without gaps; the others may run
// in any order.
std::vector<plan::Dim> row_of_operand(const plan::NodeView& node, std::size_t operand);
std::vector<plan::Dim> row_of_result(const plan::NodeView& node, std::size_t result);

// The indices that run fastest in the operands and results of a call, in this order, where that is another
// order than their types': rows that a kernel reads from start to end.
std::vector<Symbol> rows_over(const plan::NodeView& node);

}  // namespace weft::program
