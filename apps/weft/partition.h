// partition.h -- `weft partition`.
#pragma once
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is "partition".
Result<session::Reply> run_partition(int argc, char** argv);

}  // namespace weft
