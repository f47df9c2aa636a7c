// weft/ops/localize.h -- the plan that one rank of a mesh runs, with its local sizes.
//
//   global                                                     rank 2 of gpu=3
//   %0 = input {name=x, type=f32[b=8],                         %0 = input {name=x, type=f32[b=2]}
//               layout="sliced(b) on gpu"}
//   %1 = relu %0                                               %1 = relu %0
//   %2 = all-gather %1 {axis=gpu, along=b}                     %2 = input {name="take 2", type=f32[b=8]}
//   return y=%2                                                return "give 2"=%1, y=%2
//
// The layouts cut every type, and the attributes that hold sizes follow.
//
// A communication leaves the rank: its operand is an output `give N` and its result an input `take N`, where
// N is the result's number in the global plan. A loop that must know where it starts (positions, rotary
// angles, rows of a gathered table) is run at its full size around zeros and cut after: exact, not fast.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph.h"
#include "weft/plan/layout.h"

namespace weft::ops {

struct LocalPlan {
  plan::Graph graph;
  // values[v]: what global value v is here; invalid where this rank's share of it is empty.
  std::vector<plan::ValueId> values;
  // The nodes of global node n are those from ends[n-1], or 0, up to ends[n].
  std::vector<std::size_t> ends;
};

// `layouts` as infer_layouts gives them. A result that this rank adds nothing to (an empty share was summed)
// is an input `none N`, to be filled with the neutral element. Fails where an operator cannot be cut this
// way.
Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank);

}  // namespace weft::ops
