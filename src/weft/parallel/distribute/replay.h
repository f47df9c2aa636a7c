// weft/parallel/distribute/replay.h -- rebuilds a plan at other sizes and on another mesh.
//
//   GPT-3 on node=128, gpu=8        the same nodes, collectives and layouts at b=4, s=4, d=8, ..
//                                   on node=2, gpu=2: small enough for the reference interpreter
//
// Decisions that depended on sizes (which collectives, what is sharded) are deliberately kept.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// `plan` was made from `original`. `other` is the single-device plan in its place: the same
// operators in the same order, at other sizes. `mesh` has the axes of plan.mesh with other numbers
// of ranks. Fails if the two differ in more than sizes, or if layouts do not match at these sizes.
// The plan's own nodes stay as written; every other node becomes what its origin is in `other`.
Result<DistributedPlan> replay(const DistributedPlan& plan, const plan::Graph& original,
                               const plan::Graph& other, const plan::Mesh& mesh);

}  // namespace weft::distribute
