// simulate.h -- `weft simulate`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "simulate".
Result<session::Reply> run_simulate(int argc, char** argv);

}  // namespace weft
