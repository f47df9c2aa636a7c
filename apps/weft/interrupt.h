// interrupt.h -- Ctrl-C, and SIGTERM.
//
// The first one raises a flag that the running statement looks at and stops by. A second one,
// before the flag is lowered again, ends the program at once with exit code 130; at a prompt it does no more
// than the first, so that what a session has learned is not lost.
#pragma once

namespace weft::interrupt {

void install();  // signals come here from now on; a read() under way returns EINTR
void stay();     // no number of them ends the program
bool requested();
int exit_code(int code);  // of the program: 130 where a signal came and was not cleared, or else `code`
void clear();             // before each statement typed at the prompt

// SIGTERM ends the program at once, unless that is put off: then it raises a flag, however often it comes.
void put_off(bool on);
bool terminated();

}  // namespace weft::interrupt
