// test/unit/case/shell.h -- runs a shell command: its output and exit status.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace weft {

struct Outcome {
  int exit_code = -1;
  std::string text;  // standard output
};

inline Outcome run_shell(const std::string& line) {
  FILE* pipe = popen(line.c_str(), "r");
  Outcome outcome;
  char chunk[4096];
  for (std::size_t got; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) outcome.text.append(chunk, got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace weft
