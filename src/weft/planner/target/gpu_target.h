// weft/planner/target/gpu_target.h -- ON GPU: the first GPU of this machine, and what the catalog says of its kind.
#pragma once
#include "weft/language/catalog.h"
#include "weft/plan/graph/graph.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

// A cluster or a device of that name goes before.
bool is_gpu(const language::Catalog& catalog, const language::syntax::Target& target);

// It alone, or the ranks that share it. Fails where there is no driver, no GPU, or no description of its kind to plan with.
Result<Target> find_gpu(const language::Catalog& catalog, const language::syntax::Target& target);

// Fails where the plan has operators that a library is missing for: they run, slowly.
Status check_libraries(const plan::Graph& graph);

}  // namespace weft::planner
