// weft/base/number.h -- the one strict parser of numbers in files and program output.
//
//   read_number<std::int64_t>("42")      42
//   read_number<std::int64_t>("1e3")     none; nor "7x", "0x10", " 7", "+7", "", nor what does not fit
//   read_number<double>("1e3")           1000; neither "inf" nor "nan"
//
// For user input, with units and blanks, see units.h and the lexer.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace weft {

template <class Number>
std::optional<Number> read_number(std::string_view text, Number low = std::numeric_limits<Number>::lowest(),
                                  Number high = std::numeric_limits<Number>::max(), int base = 10) {
  Number number = 0;
  std::from_chars_result read{};
  if constexpr (std::floating_point<Number>)
    read = std::from_chars(text.data(), text.data() + text.size(), number);
  else
    read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const bool all = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!all || !(number >= low && number <= high)) return std::nullopt;
  return number;
}

}  // namespace weft
