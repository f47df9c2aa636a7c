// weft/parallel/distribute/half_dropout.h -- a plan whose dropouts drop one half.
//
//   dropout {rate=0.1, stream=3}     most masks of twenty elements agree with one another
//   dropout {rate=0.5, stream=3}     one in a million does
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

bool has_dropout(const plan::Graph& graph);

// The same nodes under the same numbers; a dropout that drops nothing stays as it is.
Result<plan::Graph> with_half_dropout(const plan::Graph& graph);

}  // namespace weft::distribute
