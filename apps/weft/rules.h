// weft rules ...: reads the arguments of the command and has a session do it.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is the word `rules`. Fails when the arguments make no sense. Verdicts are written as they come;
// how far a long search is, is shown on the standard error.
Result<session::Reply> run_rules(int argc, char** argv, Output& output);

}  // namespace weft
