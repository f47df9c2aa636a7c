// weft/base/kernel_file.h -- what the kernel says in a file of /proc or /sys.
#pragma once
#include <string>

namespace weft {

// All of it; empty where there is no such file. These have no size to ask for first.
std::string kernel_text(const std::string& path);

}  // namespace weft
