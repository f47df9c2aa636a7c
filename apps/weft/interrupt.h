// interrupt.h -- Ctrl-C.
//
// The first one raises a flag that the running statement looks at and stops by. A second one,
// before the flag is lowered again, ends the program at once with exit code 130; at a prompt it does no more
// than the first, so that what a session has learned is not lost.
#pragma once

namespace weft::interrupt {

void install();  // SIGINT comes here from now on; a read() under way returns EINTR
void stay();     // no number of them ends the program
bool requested();
void clear();  // before each statement typed at the prompt

}  // namespace weft::interrupt
