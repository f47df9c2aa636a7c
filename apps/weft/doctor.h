// weft doctor [PID]: what the ranks on this machine are doing, in their own words.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is the word `doctor`. Fails when the arguments make no sense.
Result<session::Reply> run_doctor(int argc, char** argv);

}  // namespace weft
