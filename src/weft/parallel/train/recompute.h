// weft/parallel/train/recompute.h -- a training plan that computes part of its forward pass twice rather than keep it.
//
//   a = contract x, w        kept: x                     a = contract x, w
//   h = gelu a               h, a die after the          h = gelu a           ...
//   ...                      forward pass                a' = contract x, w                  in backward
//   da = gelu-gradient a, dh in backward                 h' = gelu a'                        in backward
//   dv = contract h, dy      in backward                 da = gelu-gradient a', dh           in backward
//
// Copies of forward nodes stand in the backward phase, right before what reads them, and read what is kept or
// other copies. They are the same operators on the same operands, dropout with its random stream included, so
// every number of a step is the same to the last bit.
//
//   layers       each layer of a REPEAT from what comes into it; without one, runs of about as many parts as there
//                are runs
//   selective    within a layer what costs little work for its bytes, and no product with parameters
//   h, block.3   the entries and scopes of these names
//
// What is kept of a layer is its cheapest cut: of all sets of values from which the rest can be computed again the
// one with the fewest bytes, work counted in bytes too (recompute_cut.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// What of a forward pass is computed again.
struct Recompute {
  bool layers = false, selective = false;
  std::vector<std::string> names = {};  // of entries or scopes, with the scopes around them or without

  bool is_nothing() const { return !layers && !selective && names.empty(); }
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

// "none", "layers", "selective, block.3": a name that is one of these words stands in quotes.
std::string print(const Recompute& what);
Result<Recompute> read_recompute(std::string_view text);
// Adds one item of that list. Fails where it says something twice, or nothing besides others.
Status add_recompute(Recompute& to, std::string_view item, bool quoted);

struct Recomputed {
  plan::Graph graph;
  std::vector<plan::NodeId> copy_of;  // by node: the forward node, of the same graph, that it does again
  double flops = 0;                   // of the copies
};

// Fails where the plan has nothing of a name.
Result<Recomputed> recompute(const plan::Graph& graph, const Recompute& what);
// The same plan where nothing is asked for.
Result<TrainingPlan> with_recomputation(TrainingPlan plan, const Recompute& what);

// By node of a plan that learns, of one device, a mesh or a rank: it does in the backward phase what a forward node
// has done with the same operands.
std::vector<bool> find_copies(const plan::Graph& graph);

}  // namespace weft::train
