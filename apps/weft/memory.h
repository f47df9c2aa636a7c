// memory.h -- `weft memory`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "memory".
Result<session::Reply> run_memory(int argc, char** argv);

}  // namespace weft
