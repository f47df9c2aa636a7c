// tokenize.h -- `weft tokenize`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "tokenize".
Result<session::Reply> run_tokenize(int argc, char** argv);

}  // namespace weft
