#include "weft/base/kernel_file.h"

#include <fstream>
#include <iterator>

namespace weft {

std::string read_kernel_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace weft
