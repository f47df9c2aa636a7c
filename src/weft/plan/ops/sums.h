// weft/plan/ops/sums.h -- sums of products, and other reductions.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& contract();
const Operator& reduce();

}  // namespace weft::ops
