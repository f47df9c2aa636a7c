// weft/parallel/distribute/check_rings.h -- keys go around where queries are cut: an axis that asks for it must cut some.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Fails where an axis asks for ring attention and slices no index that an attention of the plan has its queries along.
Status check_rings(const plan::Graph& graph, const Distribution& distribution);

}  // namespace weft::distribute
