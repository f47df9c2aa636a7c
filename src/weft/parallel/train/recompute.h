// weft/parallel/train/recompute.h -- activation checkpointing: recomputation in the backward pass.
//
//   a = contract x, w        kept: x                     a = contract x, w
//   h = gelu a               h and a are freed after     h = gelu a           ...
//   ...                      the forward pass            a' = contract x, w                  in backward
//   da = gelu-gradient a, dh in backward                 h' = gelu a'                        in backward
//   dv = contract h, dy      in backward                 da = gelu-gradient a', dh           in backward
//
// Copies of forward nodes are placed in the backward phase, right before their readers, and read
// kept values or other copies. They are the same operators on the same operands, dropout with its
// random stream included, so a step gives bitwise identical results.
//
//   layers      each layer of a REPEAT from its inputs; without a REPEAT, about sqrt(n) runs of the
//               n parts
//   selective   within a layer, nodes with little work per byte, and no products with parameters
//   h, block.3  the entries and scopes of these names
//
// What is kept of a layer is a minimum cut: of all sets of values from which the rest can be
// recomputed, the one with the fewest bytes, where work also counts as bytes (recompute_cut.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// What to recompute of a forward pass.
struct Recompute {
  bool layers = false, selective = false;
  std::vector<std::string> names = {};  // of entries or scopes, with or without their enclosing scopes

  bool is_nothing() const { return !layers && !selective && names.empty(); }
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

// "none", "layers", "selective, block.3"; a name equal to one of these words is quoted.
std::string print(const Recompute& what);
Result<Recompute> read_recompute(std::string_view text);
// Adds one item of that list. Fails on duplicates, and if "none" is combined with others.
Status add_recompute(Recompute& to, std::string_view item, bool quoted);

struct Recomputed {
  plan::Graph graph;
  std::vector<plan::NodeId> copy_of;  // by node: the forward node of this graph that it repeats
  double flops = 0;                   // of the copies
};

// Fails if a name matches nothing in the plan.
Result<Recomputed> recompute(const plan::Graph& graph, const Recompute& what);
// Returns the plan unchanged if nothing is to be recomputed.
Result<TrainingPlan> with_recomputation(TrainingPlan plan, const Recompute& what);

// By node of a training plan, of a single device, a mesh or a rank: whether it repeats a forward
// node in the backward phase, with the same operands.
std::vector<bool> find_copies(const plan::Graph& graph);

}  // namespace weft::train
