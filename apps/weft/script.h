// script.h -- reads the text of a script from a file or standard input.
#pragma once
#include <string>

#include "weft/base/result.h"

namespace weft {

// "-" is standard input. A file that cannot be read is a world error that names the file and the
// reason.
Result<std::string> read_script(const std::string& file);

}  // namespace weft
