#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

Result<session::Reply> run_validate(int argc, char** argv);

}  // namespace weft
