// weft/plan/spmd/layouts.h -- infers the layout of every value of a plan on a mesh.
//
//   %0 = input {name=x, type=f32[b=8,d=4], layout="sliced(d) on gpu"}
//   %1 = parameter {name=w, type=f32[d=4,f=2], layout="sliced(d) on gpu"}
//   %2 = contract %0, %1 {to=[b,f]}                 partial(sum) on gpu: d is reduced
//   %3 = all-reduce %2 {axis=gpu}                   replicated
//
// A source has the layout that its attribute states. A communication operator needs one layout on
// its own axis and gives another (communication.h). For every other operator it follows from the
// index signature, mesh axis by mesh axis:
//
//   all operands replicated                          results replicated
//   a parallel loop sliced in all operands           results sliced
//     that have it, the other operands replicated
//   a reduced loop sliced likewise                   results partial(its monoid)
//   a loop with sliding windows, the operands        results sliced or partial, without borders
//     sliced with the borders they see (sliding.h)
//   attention's queries and keys sliced alike        results sliced: ring attention (ring.h)
//   addends to which the operator can be applied     results partial(its monoid) (carries.h)
//   some operands varying, the others replicated     results varying
//
// There are no implicit conversions: anything else is an error that names the node, the axis, the
// layouts found and a fix.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::spmd {

// The layouts of one node's results. `layouts`: by value, at least those of its operands.
Result<std::vector<plan::Layout>> infer_layouts(const plan::NodeView& node, const plan::Mesh& mesh,
                                                std::span<const plan::Layout> layouts);

// The layout of each value of the plan, by value id.
Result<std::vector<plan::Layout>> infer_layouts(const plan::Graph& graph, const plan::Mesh& mesh);

}  // namespace weft::spmd
