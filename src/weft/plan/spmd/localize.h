// weft/plan/spmd/localize.h -- the plan that one rank of a mesh runs, with its local sizes.
//
//   global                                                     rank 2 of gpu=3
//   %0 = input {name=x, type=f32[b=8],                         %0 = input {name=x, type=f32[b=2]}
//               layout="sliced(b) on gpu"}
//   %1 = relu %0                                               %1 = relu %0
//   %2 = all-gather %1 {axis=gpu, along=b}                     %2 = exchange %1 {kind="all-gather", axis=gpu,
//                                                                                ranks=3, type=f32[b=8],
//                                                                                along=b}
//   return y=%2                                                return y=%2
//
// The layouts cut every type, and the attributes that hold sizes follow.
//
// What becomes of communication is the caller's choice. It may stay, as the rank's side of it: to compile,
// price and run. The ranks' plans then list the same exchanges in the same order, whatever their shares, and
// nothing that no output of the global plan needs. Or it leaves: its operand is an output `give N` and its
// result an input `take N`, where N is the result's number in the global plan; to imitate a mesh.
//
// A loop that must know where it starts (positions, rotary angles, rows of a gathered table) is told so
// by an attribute; where an operator has none, it is run at its full size around zeros and cut after:
// exact, not fast.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::spmd {

enum class Exchanges : std::uint8_t { leave, stay };

struct LocalPlan {
  plan::Graph graph;
  // values[v]: what global value v is here; invalid where this rank's share of it is empty.
  std::vector<plan::ValueId> values;
  // The nodes of global node n are those from ends[n-1], or 0, up to ends[n].
  std::vector<std::size_t> ends;
};

// `layouts` as infer_layouts gives them. A result that this rank adds nothing to (an empty share was summed)
// is the neutral element; where exchanges leave, an input `none N` to be filled with it. Fails where an
// operator cannot be cut this way.
Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank,
                           Exchanges exchanges = Exchanges::leave);

}  // namespace weft::spmd
