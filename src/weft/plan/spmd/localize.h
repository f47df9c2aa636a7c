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
// The layouts determine the local type of every value, and attributes with sizes are adjusted.
//
// The caller chooses how to treat communication. With Exchanges::stay it becomes the rank's side of
// the exchange, to compile, estimate and run. All ranks' plans then have the same exchanges in the
// same order, even if shares are empty, and nothing that no output of the global plan needs. With
// Exchanges::leave its operand becomes an output `give N` and its result an input `take N`, where N
// is the result's number in the global plan; this is for running a virtual mesh.
//
// A loop that must know where it starts (positions, rotary angles, rows of a gathered table) gets
// its start in an attribute. If an operator has no such attribute, it runs at full size on operands
// padded with zeros, and its results are sliced: exact, but slow.
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
  // values[v]: the local value of global value v; invalid if this rank's share is empty.
  std::vector<plan::ValueId> values;
  // The nodes of global node n are those from ends[n-1] (or 0) up to ends[n].
  std::vector<std::size_t> ends;
};

// `layouts` as returned by infer_layouts. A result to which this rank adds nothing (it summed an
// empty share) is the neutral element; with Exchanges::leave, an input `none N` for the caller to
// fill with it. Fails if an operator cannot be sliced this way.
Result<LocalPlan> localize(const plan::Graph& graph, const plan::Mesh& mesh,
                           std::span<const plan::Layout> layouts, std::int32_t rank,
                           Exchanges exchanges = Exchanges::leave);

}  // namespace weft::spmd
