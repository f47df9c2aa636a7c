// weft/plan/ops/sequences.h -- attention, rotary embeddings, recurrences, dropout.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& attention();
const Operator& attention_gradient();
const Operator& attention_merge();
const Operator& rotary();
const Operator& recurrence();
const Operator& dropout();

}  // namespace weft::ops
