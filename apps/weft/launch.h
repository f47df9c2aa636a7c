// weft launch ...: starts the ranks of a job on this machine.
#pragma once
#include <string>

#include "output.h"
#include "weft/base/result.h"

namespace weft {

struct LaunchReply {
  int exit_code = 0;      // of the first rank that failed; 128 + the signal that killed it
  std::string complaint;  // which rank that was; empty when all went well
};

// `argv[0]` is the word `launch`. Fails when the arguments make no sense or the program cannot be started.
// Ranks write where this program does; with --tag through `output`, each line with its rank.
Result<LaunchReply> run_launch(int argc, char** argv, Output& output);

}  // namespace weft
