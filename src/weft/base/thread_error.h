// weft/base/thread_error.h -- a readable error for a thread that cannot be started
// (std::system_error).
#pragma once
#include <cctype>
#include <string>
#include <system_error>

#include "weft/base/result.h"

namespace weft {

inline Error thread_error(const std::system_error& error) {
  std::string why = error.code().message();
  if (!why.empty()) why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
  return environment_error(
      "cannot start a thread: " + why,
      "ulimit -u, or the container, limits threads and processes, and ulimit -v their memory; "
      "SET threads = 1 needs fewer");
}

}  // namespace weft
