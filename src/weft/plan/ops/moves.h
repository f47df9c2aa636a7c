// weft/plan/ops/moves.h -- the same elements under other names, in another place, or in part.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& broadcast();
const Operator& transpose();
const Operator& rename();
const Operator& split();
const Operator& merge();
const Operator& slice();
const Operator& pad();
const Operator& concat();
const Operator& cast();
const Operator& stop_gradient();

}  // namespace weft::ops
