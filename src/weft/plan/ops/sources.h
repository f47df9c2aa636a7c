// weft/plan/ops/sources.h -- operators without operands: inputs, parameters, constants ..
#pragma once
#include <string_view>

#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& input();
const Operator& parameter();
const Operator& state();
const Operator& constant();
const Operator& position();
// Input, parameter or state: a source whose value is supplied by name.
bool is_source(const plan::Operator& op);
// Its attribute `layout`; may be empty. REQUIRES: is_source(source.op())
std::string_view layout_of(const plan::NodeView& source);

}  // namespace weft::ops
