// weft/plan/ops/all.h -- the set of all operators: what a reader of plan text knows.
#pragma once
#include "weft/plan/graph/operator.h"

namespace weft::ops {

const plan::OperatorSet& all();

}  // namespace weft::ops
