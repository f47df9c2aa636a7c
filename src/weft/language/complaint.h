// weft/language/complaint.h -- formats an error for the author of the text.
//
//   error 1:20: unknown cluster: ring5
//     SELECT sum(g) OVER ring5 FROM g
//                        ^^^^^
//     did you mean 'ring4'?
//
// Columns count characters, not bytes; an invalid UTF-8 byte is printed and counted as one. A line
// longer than a screen is truncated with … to the part around the error. The functions return a
// string and print nothing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::language {

struct Position {
  std::size_t line = 1, column = 1;
};

// Line and column of the byte at `offset`. An offset past the end counts as the end.
Position position(std::string_view text, std::size_t offset);

// Each line ends in a newline. An error without a position is printed as message and hint only.
std::string complain(const Error& error, std::string_view text);

}  // namespace weft::language
