// weft/parallel/train/recompute_cut.h -- which forward values are kept, and which are computed again from them.
//
//   x ──▶ a ──▶ h ──▶ y       the backward phase needs a and h: keep both, or x alone, whatever takes fewer bytes
//
// A value that is needed is kept, at the price of its bytes, or its node runs again, at the price of its work, and
// then needs its operands. The cheapest such choice is the narrowest cut of a network: a value leads to its node
// over its bytes, a node to its operands for nothing and to the end over its work.
//
// Included by the files of train/ only.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/train/recompute.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// What a layer may do again, and what a flop costs, in bytes.
struct Allowance {
  enum class Of : std::uint8_t { nothing, little_work, all };
  std::vector<Of> of_node;          // by node
  std::vector<std::int32_t> layer;  // by node: copies read what is of their own layer or kept; -1: none
  std::int32_t layers = 0;
};

// Fails where a name is none of the plan's.
Result<Allowance> allowed(const plan::Graph& graph, const Recompute& what);

// By node: whether it runs again in the backward phase, if anything there needs it.
std::vector<bool> nodes_to_repeat(const plan::Graph& graph, const Allowance& allowance);

}  // namespace weft::train
