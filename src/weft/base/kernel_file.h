// weft/base/kernel_file.h -- reads a file of /proc or /sys.
#pragma once
#include <string>

namespace weft {

// The whole file; empty if it does not exist. These files do not report their size.
std::string read_kernel_file(const std::string& path);

}  // namespace weft
