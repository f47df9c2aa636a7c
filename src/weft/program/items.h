// weft/program/items.h -- what an operator's own kernel can be cut into.
//
// Items are independent: a kernel that does items [3, 7) writes what it would write for them when
// doing all. conv2d has images, cross-entropy rows, an optimizer elements.
#pragma once
#include <cstdint>

#include "weft/plan/graph.h"

namespace weft::program {

std::int64_t item_count(const plan::NodeView& node);

// True when each item reads its own share of the operand, the shares lying one after the other.
bool operand_has_items(const plan::NodeView& node, std::size_t operand);

}  // namespace weft::program
