#include "weft/base/check.h"

#include <fmt/format.h>

namespace weft {

InternalError::InternalError(std::string_view claim, std::string_view detail,
                             const std::source_location& where)
    : std::logic_error(fmt::format("{}:{}: check failed: {}{}{}", where.file_name(), where.line(),
                                   claim, detail.empty() ? "" : ": ", detail)) {}

void throw_internal_error(std::string_view claim, std::string_view detail,
                          const std::source_location& where) {
  throw InternalError(claim, detail, where);
}

}  // namespace weft
