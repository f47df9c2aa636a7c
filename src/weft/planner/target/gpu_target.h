// weft/planner/target/gpu_target.h -- ON GPU: the first GPU of this machine and its catalog entry.
#pragma once
#include "weft/language/catalog.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

// A cluster or device named GPU takes precedence.
bool is_gpu(const language::Catalog& catalog, const language::syntax::Target& target);

// The GPU alone, or the ranks that share it. Fails without a driver, a GPU, or a catalog entry for
// its model.
Result<Target> find_gpu(const language::Catalog& catalog, const language::syntax::Target& target);

// Fails if a library is missing for operators of the plan. They would still run, but slowly.
Status check_libraries(const plan::Graph& graph);

}  // namespace weft::planner
