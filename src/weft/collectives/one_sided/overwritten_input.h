// weft/collectives/one_sided/overwritten_input.h -- programs that are declared out of place and write to their input.
//
// They may compute what they promise, but whoever calls them loses the input: the runtimes take it for
// constant, and NCCL's callers do too.
#pragma once
#include <optional>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// The first step that does; none where input and output are declared to be one memory.
std::optional<Finding> overwritten_input(const Program& program);
std::optional<Finding> overwritten_input(const OneSided& plan);

}  // namespace weft::collective
