// weft/plan/ops/codes.h -- numbers made small for the wire, and back (codec.h).
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& encode();
const Operator& decode();

}  // namespace weft::ops
