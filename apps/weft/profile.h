// profile.h -- `weft profile`.
#pragma once
#include "weft/base/result.h"
#include "weft/session/session.h"

namespace weft {

// `argv[0]` is "profile".
Result<session::Reply> run_profile(int argc, char** argv);

}  // namespace weft
