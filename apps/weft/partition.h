// partition.h -- `weft partition`.
#pragma once
#include "weft/base/result.h"
#include "weft/session/session.h"

namespace weft {

// `argv[0]` is "partition".
Result<session::Reply> run_partition(int argc, char** argv);

}  // namespace weft
