// weft launch ...: starts the ranks of a job on this machine.
#pragma once
#include <string>

#include "output.h"
#include "weft/base/result.h"

namespace weft {

struct LaunchReply {
  int exit_code = 0;      // of the first failed rank; 128 + its signal if it was killed
  std::string complaint;  // names that rank; empty on success
};

// `argv[0]` is `launch`. Fails if the arguments are invalid or the program cannot be started. Ranks
// inherit the standard streams; with --tag their lines go through `output`, tagged with the rank.
Result<LaunchReply> run_launch(int argc, char** argv, Output& output);

}  // namespace weft
