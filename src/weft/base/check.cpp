#include "weft/base/check.h"

#include <fmt/format.h>

namespace weft {

void throw_internal_error(const char* file, int line, std::string_view claim, std::string_view detail) {
  throw InternalError(
      fmt::format("{}:{}: check failed: {}{}{}", file, line, claim, detail.empty() ? "" : ": ", detail));
}

}  // namespace weft
