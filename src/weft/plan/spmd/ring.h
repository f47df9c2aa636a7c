// weft/plan/spmd/ring.h -- ring attention: queries and keys are sliced over the same ranks.
//
//   rank 0   q0    k0 v0 -> k2 v2 -> k1 v1
//   rank 1   q1    k1 v1 -> k0 v0 -> k2 v2
//   rank 2   q2    k2 v2 -> k1 v1 -> k0 v0
//
// Each rank keeps its queries. Keys and values move around a ring, and the result of each block is
// merged with those of earlier blocks (attention-merge). No rank holds all keys.
//
// In the plan of a mesh this is the attention operator with q sliced along its queries and k, v
// along their keys on one axis; otherwise attention needs whole keys. In the plan of a rank it is
// the individual steps (localize_ring.cpp): the next block is in transit while the current one is
// computed. The gradient works the same way: the gradients of a block travel with it, accumulate
// the addends of all ranks, and return to the owner at the end.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::spmd {

// False if a mask has both the query and the key index: a rank would need all of its rows.
bool supports_ring_attention(const plan::NodeView& node);

// The layouts of operands and results on the ring's axis. REQUIRES: supports_ring_attention(node)
std::vector<plan::AxisLayout> ring_operands(const plan::NodeView& node);
std::vector<plan::AxisLayout> ring_results(const plan::NodeView& node);

// The axes on which the operands have these layouts. `layouts`: by value.
std::vector<std::size_t> ring_axes(const plan::NodeView& node, std::span<const plan::Layout> layouts);

// Whether ranks with later queries attend to more keys than others: a causal mask hides the keys
// after a query.
bool later_ranks_attend_more(const plan::Graph& graph, std::span<const plan::Layout> layouts);

}  // namespace weft::spmd
