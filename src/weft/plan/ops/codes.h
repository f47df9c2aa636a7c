// weft/plan/ops/codes.h -- encode and decode: compression for communication (codec.h).
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& encode();
const Operator& decode();

}  // namespace weft::ops
