// weft/plan/ops/routing.h -- joins on a value, and routing.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& gather();
const Operator& scatter_add();
const Operator& top_k();
const Operator& slot();

}  // namespace weft::ops
