// weft/collectives/collective/overwritten_input.h -- programs that are declared out of place and write to their input.
//
// They may compute what they promise, but whoever calls them loses the input: the runtimes take it for
// constant, and NCCL's callers do too.
#pragma once
#include <optional>

#include "weft/collectives/collective/check.h"
#include "weft/collectives/collective/one_sided.h"
#include "weft/collectives/collective/program.h"

namespace weft::collective {

// The first step that does; none where input and output are declared to be one memory.
std::optional<Finding> overwritten_input(const Program& program);
std::optional<Finding> overwritten_input(const OneSided& plan);

}  // namespace weft::collective
