// repl.h -- the prompt: reads statements from a terminal and executes them.
//
//   weft> SHOW CLUSTERS;
//   weft> CREATE MODEL mlp        a statement runs at its ; and until then
//      ->   (b = 64, d = 784)     the prompt reads more lines
//
// `\q` or Ctrl-D quits, `\h [topic]` or `help [topic]` prints help, Ctrl-C discards the statement
// being typed or stops the one running. After an error the prompt returns.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"

namespace weft {

// Returns the program's exit code: 0, or 2 if the output cannot be written.
int run_repl(session::Session& session, Output& output);

}  // namespace weft
