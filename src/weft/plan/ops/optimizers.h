// weft/plan/ops/optimizers.h -- optimizer steps.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& sgd();
const Operator& momentum();
const Operator& adam();
const Operator& adamw();

}  // namespace weft::ops
