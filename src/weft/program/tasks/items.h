// weft/program/tasks/items.h -- how operator kernels can be split, and which layouts they need.
//
// Items are independent: running items [3, 7) writes the same as running all. conv2d has images,
// cross-entropy rows, an optimizer elements.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/symbols.h"
#include "weft/plan/graph/graph.h"

namespace weft::program {

// Why no CPU kernel supports this node, so that it runs by its reference definition: "its elements
// are bf16". Empty if one does.
std::string why_reference_op(const plan::NodeView& node);

// Whether the CPU kernel for this node supports only f32, so that bf16 or f16 operands and results
// are converted.
bool computes_in_f32(const plan::NodeView& node);

std::int64_t item_count(const plan::NodeView& node);

// Whether each item reads its own share of the operand, and shares are contiguous.
bool operand_has_items(const plan::NodeView& node, std::size_t operand);
// Whether each item writes its own share of every result, likewise; otherwise shares are
// interleaved.
bool results_have_items(const plan::NodeView& node);

// For batch-norm: one if a channel is contiguous, else as many as fit in a cache line. For the
// weight gradient of a convolution: enough for an efficient matrix product.
std::int64_t channels_per_item(const plan::NodeView& node);

// Queries per item of attention. Measured, like kKeyTile in device/cpu/attention.cpp; two tiles of
// scores fit in the L2 cache.
constexpr std::int64_t kQueryTile = 192;

// Whether the node's kernel accepts any row layout of operands and results, as attention's does.
bool accepts_any_rows(const plan::NodeView& node);
// For such a node, the indices that must be fastest and dense in an operand or result; the others
// may have any order.
std::vector<plan::Dim> row_of_operand(const plan::NodeView& node, std::size_t operand);
std::vector<plan::Dim> row_of_result(const plan::NodeView& node, std::size_t result);

// The indices that must be fastest in operands and results of a call, in this order, if it differs
// from their types': rows that a kernel reads sequentially.
std::vector<Symbol> rows_over(const plan::NodeView& node);

}  // namespace weft::program
