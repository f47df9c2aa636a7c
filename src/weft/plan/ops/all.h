// weft/plan/ops/all.h -- the set of all operators, as a reader of plan text needs it.
#pragma once
#include "weft/plan/graph/operator.h"

namespace weft::ops {

const plan::OperatorSet& all();

}  // namespace weft::ops
