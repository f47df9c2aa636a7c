// weft/communication/transport/variable.h -- environment variables.
//
//   const std::string_view home = variable("HOME");   // empty if not set
#pragma once
#include <cstdlib>
#include <string_view>

namespace weft::transport {

inline std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace weft::transport
