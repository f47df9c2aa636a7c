// weft doctor [PID]: what the ranks on this machine report about themselves.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `doctor`. Fails if the arguments are invalid.
Result<session::Reply> run_doctor(int argc, char** argv);

}  // namespace weft
