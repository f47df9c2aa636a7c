// weft/parallel/distribute/half_dropout.h -- a plan with every dropout rate set to one half.
//
//   dropout {rate=0.1, stream=3}     two masks of twenty elements agree one time in fifty
//   dropout {rate=0.5, stream=3}     one time in a million
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

bool has_dropout(const plan::Graph& graph);

// The same nodes under the same ids; a dropout that drops nothing is unchanged.
Result<plan::Graph> with_half_dropout(const plan::Graph& graph);

}  // namespace weft::distribute
