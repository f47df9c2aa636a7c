// repl.h -- the prompt: reads statements from a terminal and answers each.
//
//   weft> SHOW CLUSTERS;
//   weft> CREATE MODEL mlp        a statement runs when its ; is there; until then
//      ->   (b = 64, d = 784)     the prompt asks for more
//
// `\q` or Ctrl-D leaves, `\h [topic]` or `help [topic]` helps, Ctrl-C gives up the statement
// being typed or stops the one that runs. An error is shown and the prompt comes back.
#pragma once
#include "output.h"
#include "weft/app/session/session.h"

namespace weft {

// Returns the program's exit code: 0, or 2 when the output cannot be written.
int run_repl(session::Session& session, Output& output);

}  // namespace weft
