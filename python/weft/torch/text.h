// weft/torch/text.h -- the messages of errors, and the exceptions that carry them.
//
// They use no streams: torch and this extension may have different copies of the C++ library, which do
// not share locales. std::runtime_error becomes RuntimeError in Python, without the C++ stack that
// torch adds to errors of its own.
#pragma once
#include <stdexcept>
#include <string>
#include <type_traits>

#include <ATen/ATen.h>

namespace weft_torch {

inline void append(std::string& to, const char* part) { to += part; }
inline void append(std::string& to, const std::string& part) { to += part; }
inline void append(std::string& to, at::ScalarType part) { to += at::toString(part); }
inline void append(std::string& to, const at::Device& part) { to += part.str(); }
template <class Number, std::enable_if_t<std::is_integral<Number>::value, int> = 0>
void append(std::string& to, Number part) {
  to += std::to_string(part);
}
inline void append(std::string& to, at::IntArrayRef sizes) {
  to += "[";
  for (size_t i = 0; i < sizes.size(); ++i) to += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  to += "]";
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string made;
  (append(made, parts), ...);
  return made;
}

// Throws the text of the parts unless the condition holds.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw std::runtime_error(text(parts...));
}

}  // namespace weft_torch
