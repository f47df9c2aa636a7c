// weft schedule ...: parses the command's arguments and runs it in a session.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `schedule`. Fails if the arguments are invalid.
Result<session::Reply> run_schedule(int argc, char** argv);

}  // namespace weft
