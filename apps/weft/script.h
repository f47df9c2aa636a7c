// script.h -- a script's text, from a file or the standard input.
#pragma once
#include <string>

#include "weft/base/result.h"

namespace weft {

// "-" is the standard input. What cannot be read is the world's fault: the error names the file
// and the reason.
Result<std::string> read_script(const std::string& file);

}  // namespace weft
