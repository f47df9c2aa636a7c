// weft plan ...: reads the arguments of the command and has a session do it.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is the word `plan`. Fails when the arguments make no sense.
Result<session::Reply> run_plan(int argc, char** argv);

}  // namespace weft
