// weft/collectives/one_sided/overwritten_input.h -- finds writes to the input out of place.
//
// Their result may be correct, but the caller's input is lost. The runtimes treat it as constant,
// and so do NCCL's callers.
#pragma once
#include <optional>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// The first step that does; empty if input and output are declared to be one buffer.
std::optional<Finding> overwritten_input(const Program& program);
std::optional<Finding> overwritten_input(const OneSided& plan);

}  // namespace weft::collective
