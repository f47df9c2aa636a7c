// weft/plan/ops/moves.h -- operators that rename, rearrange or select elements.
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
