// weft/plan/spmd/ring.h -- attention whose queries and keys are cut by the same ranks: keys go around.
//
//   rank 0   q0    k0 v0 -> k2 v2 -> k1 v1        Each rank keeps its queries. Keys and values pass from rank to
//   rank 1   q1    k1 v1 -> k0 v0 -> k2 v2        rank, and what a block of them gives is merged with what the
//   rank 2   q2    k2 v2 -> k1 v1 -> k0 v0        blocks before gave (attention-merge). Nobody holds all keys.
//
// In the plan of a mesh that is attention as it is, with q sliced along its queries and k, v along their keys on one
// axis; elsewhere it needs keys whole. In the plan of a rank it is the steps (localize_ring.cpp): the next block is
// on its way while this one is attended to. The gradient goes round the same way; the gradients of a block travel
// with it, gather what every rank adds, and come home at the end.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::spmd {

// False where a mask says of every query and key by themselves: a rank would need all of its rows.
bool can_go_around(const plan::NodeView& node);

// What operands must be on the axis, and what results are. REQUIRES: can_go_around(node)
std::vector<plan::AxisLayout> ring_operands(const plan::NodeView& node);
std::vector<plan::AxisLayout> ring_results(const plan::NodeView& node);

// The axes on which operands are held so. `layouts`: by value.
std::vector<std::size_t> ring_axes(const plan::NodeView& node, std::span<const plan::Layout> layouts);

// Whether ranks that hold later queries attend to more keys than others: a causal mask hides the keys after a query.
bool later_ranks_attend_more(const plan::Graph& graph, std::span<const plan::Layout> layouts);

}  // namespace weft::spmd
