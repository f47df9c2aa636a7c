// weft/parallel/distribute/check_rings.h -- ring attention needs an axis that slices the queries.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Fails if an axis requests ring attention but slices no index along which attention queries run.
Status check_rings(const plan::Graph& graph, const Distribution& distribution);

}  // namespace weft::distribute
