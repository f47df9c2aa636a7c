// weft bench ...: reads the arguments of the command and has a session do it.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is the word `bench`. Fails when the arguments make no sense. Tables are written as they are done.
Result<session::Reply> run_bench(int argc, char** argv, Output& output);

// `argv[0]` is the word `bench-rank`, which `weft bench` starts and no manual mentions.
Result<session::Reply> run_bench_rank(int argc, char** argv);

}  // namespace weft
