// weft/base/check.h -- our own mistakes.
//
// WEFT_CHECK states what the code around it has already made true. When it is false the
// fault is Weft's, never the user's: it throws InternalError, which only session/ catches.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// By file and line rather than std::source_location, which clang 14 lacks.
[[noreturn]] void throw_internal_error(const char* file, int line, std::string_view claim,
                                       std::string_view detail = {});

}  // namespace weft

// WEFT_CHECK(claim) or WEFT_CHECK(claim, "detail that helps whoever reads the report").
#define WEFT_CHECK(claim, ...) \
  (static_cast<bool>(claim)    \
       ? void(0)               \
       : ::weft::throw_internal_error(__FILE__, __LINE__, #claim __VA_OPT__(, ) __VA_ARGS__))
