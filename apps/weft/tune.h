// tune.h -- `weft tune`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "tune".
Result<session::Reply> run_tune(int argc, char** argv);

}  // namespace weft
