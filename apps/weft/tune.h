// tune.h -- `weft tune`.
#pragma once
#include "weft/base/result.h"
#include "weft/session/session.h"

namespace weft {

// `argv[0]` is "tune".
Result<session::Reply> run_tune(int argc, char** argv);

}  // namespace weft
