// weft/plan/ops/rows.h -- functions of whole rows.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& softmax();
const Operator& layer_norm();
const Operator& rms_norm();
const Operator& batch_norm();
const Operator& cross_entropy();
const Operator& cross_entropy_gradient();
const Operator& linear_cross_entropy();
const Operator& labelled();

}  // namespace weft::ops
