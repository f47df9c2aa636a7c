// profile.h -- `weft profile`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "profile".
Result<session::Reply> run_profile(int argc, char** argv);

}  // namespace weft
