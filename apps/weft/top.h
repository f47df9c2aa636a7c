// weft top: how much the ranks on this machine communicate, every second.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is the word `top`. Writes pictures until Ctrl-C, or one. Fails when the arguments make no sense.
Result<session::Reply> run_top(int argc, char** argv, Output& output);

}  // namespace weft
