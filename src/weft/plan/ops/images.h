// weft/plan/ops/images.h -- convolution and pooling.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& conv2d();
const Operator& conv2d_input_gradient();
const Operator& conv2d_weight_gradient();
const Operator& max_pool();
const Operator& max_pool_gradient();
const Operator& avg_pool();
const Operator& avg_pool_gradient();

}  // namespace weft::ops
