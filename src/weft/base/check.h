// weft/base/check.h -- assertions about Weft's own code.
//
// WEFT_CHECK states an invariant that the surrounding code guarantees. A violation is a bug in
// Weft, never the user's error. It throws InternalError, which only session/ catches.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Takes file and line instead of std::source_location, which clang 14 lacks.
[[noreturn]] void throw_internal_error(const char* file, int line, std::string_view claim,
                                       std::string_view detail = {});

}  // namespace weft

// WEFT_CHECK(claim) or WEFT_CHECK(claim, "detail for the bug report").
#define WEFT_CHECK(claim, ...) \
  (static_cast<bool>(claim)    \
       ? void(0)               \
       : ::weft::throw_internal_error(__FILE__, __LINE__, #claim __VA_OPT__(, ) __VA_ARGS__))
