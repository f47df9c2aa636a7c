// weft collective ...: parses the command's arguments and runs it in a session.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `collective`. Fails if the arguments are invalid.
Result<session::Reply> run_collective(int argc, char** argv);

}  // namespace weft
