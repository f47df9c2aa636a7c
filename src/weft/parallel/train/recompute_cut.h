// weft/parallel/train/recompute_cut.h -- chooses which forward values to keep or recompute.
//
//   x ──▶ a ──▶ h ──▶ y       the backward phase needs a and h: keep both, or only x
//
// A needed value is either kept, at the cost of its bytes, or its node runs again, at the cost of
// its work, and then needs its operands. The cheapest choice is a minimum cut of a flow network: a
// value connects to its node with its bytes as capacity, a node to its operands with unlimited
// capacity and to the sink with its work.
//
// Included by the files of train/ only.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/train/recompute.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// What each node of a layer allows.
struct Allowance {
  enum class Of : std::uint8_t { nothing, little_work, all };
  std::vector<Of> of_node;          // by node
  std::vector<std::int32_t> layer;  // by node: copies read values of their own layer or kept ones; -1: none
  std::int32_t layers = 0;
};

// Fails if a name matches nothing in the plan.
Result<Allowance> allowed(const plan::Graph& graph, const Recompute& what);

// By node: whether it runs again in the backward phase, if any node there needs it.
std::vector<bool> nodes_to_repeat(const plan::Graph& graph, const Allowance& allowance);

}  // namespace weft::train
