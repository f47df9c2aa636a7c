// weft/plan/spmd/layouts.h -- the layout of every value of a plan on a mesh, from those of its sources.
//
//   %0 = input {name=x, type=f32[b=8,d=4], layout="sliced(d) on gpu"}
//   %1 = parameter {name=w, type=f32[d=4,f=2], layout="sliced(d) on gpu"}
//   %2 = contract %0, %1 {to=[b,f]}                 partial(sum) on gpu: d is reduced
//   %3 = all-reduce %2 {axis=gpu}                   replicated
//
// A source has the layout its attribute says. A communication operator needs one layout on its own axis
// and gives another (communication.h). Every other operator follows from its index signature, mesh axis by
// mesh axis:
//
//   all operands replicated                          results replicated
//   a parallel loop sliced in all operands           results sliced
//     that walk it, the other operands replicated
//   a reduced loop sliced likewise                   results partial(its monoid)
//   a loop that windows slide along, the operands    results sliced or partial, without borders
//     sliced with the borders they see (sliding.h)
//   attention's queries and keys sliced alike        results sliced: keys go around         (see ring.h)
//   addends that the operator carries through        results partial(sum | max | min)   (see carries.h)
//   some operands varying, the others replicated     results varying
//
// Nothing is converted silently: anything else is an error that names the node, the axis, what was found
// and what would do.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"

namespace weft::spmd {

// Of the results of one node. `layouts`: by value, those of all that it reads.
Result<std::vector<plan::Layout>> infer_layouts(const plan::NodeView& node, const plan::Mesh& mesh,
                                                std::span<const plan::Layout> layouts);

// One layout for each value of the plan, by its id.
Result<std::vector<plan::Layout>> infer_layouts(const plan::Graph& graph, const plan::Mesh& mesh);

}  // namespace weft::spmd
