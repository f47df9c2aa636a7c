// weft/plan/ops/sources.h -- values that come from outside the plan, or from nothing.
#pragma once
#include <string_view>

#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& input();
const Operator& parameter();
const Operator& state();
const Operator& constant();
const Operator& position();
// Input, parameter or state: a source that has a name and is given its value.
bool is_source(const plan::Operator& op);
// What its attribute `layout` says, "" where it says nothing. REQUIRES: is_source(source.op())
std::string_view layout_of(const plan::NodeView& source);

}  // namespace weft::ops
