// weft bench ...: parses the command's arguments and runs it in a session.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is `bench`. Fails if the arguments are invalid. Writes tables as they are completed.
Result<session::Reply> run_bench(int argc, char** argv, Output& output);

// `argv[0]` is `bench-rank`, an undocumented command that `weft bench` starts.
Result<session::Reply> run_bench_rank(int argc, char** argv);

}  // namespace weft
