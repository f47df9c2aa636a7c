// weft/parallel/distribute/replay.h -- a distributed plan at other sizes and on another mesh, with the same structure.
//
//   GPT-3 on node=128, gpu=8        the same nodes, collectives and layouts at b=4, s=4, d=8, ..
//                                   on node=2, gpu=2: small enough to be run by the definition
//
// What was decided by size (which collectives, what is sharded) is not decided again: that is the point.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// `plan` was made of `original`; `other` is the plan of one device that takes its place: the same operators
// in the same order, at other sizes. `mesh` has the axes of plan.mesh with other numbers of ranks. Fails
// where the two differ in more than sizes, and where the layouts do not go together at these sizes. What the
// plan has of its own stays as it is written; all else becomes what its origin is in `other`.
Result<DistributedPlan> replay(const DistributedPlan& plan, const plan::Graph& original,
                               const plan::Graph& other, const plan::Mesh& mesh);

}  // namespace weft::distribute
