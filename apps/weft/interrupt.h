// interrupt.h -- Ctrl-C, and SIGTERM.
//
// The first Ctrl-C sets a flag that stops the running statement. A second one, before the flag is
// cleared, ends the program at once with exit code 130. At a prompt it has the same effect as the
// first, so that the session's data is not lost.
#pragma once

namespace weft::interrupt {

void install();  // installs the handlers; a blocked read() then returns EINTR
void stay();     // repeated Ctrl-C no longer ends the program
bool requested();
int exit_code(int code);  // 130 if Ctrl-C came and was not cleared, otherwise `code`
void clear();             // before each statement typed at the prompt

// SIGTERM ends the program at once. While put off, it only sets a flag, however often it comes.
void defer_termination(bool on);
bool terminated();

}  // namespace weft::interrupt
