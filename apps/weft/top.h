// weft top: the communication of the ranks on this machine, updated every second.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `top`. Prints until Ctrl-C, or once. Fails if the arguments are invalid.
Result<session::Reply> run_top(int argc, char** argv, Output& output);

}  // namespace weft
