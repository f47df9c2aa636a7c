// weft rules ...: parses the command's arguments and runs it in a session.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `rules`. Fails if the arguments are invalid. Writes verdicts as they arrive, and
// shows the progress of a long search on standard error.
Result<session::Reply> run_rules(int argc, char** argv, Output& output);

}  // namespace weft
