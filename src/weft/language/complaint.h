// weft/language/complaint.h -- an error, shown to the person who wrote the text.
//
//   error 1:20: unknown cluster: ring5
//     SELECT sum(g) OVER ring5 FROM g
//                        ^^^^^
//     did you mean 'ring4'?
//
// Columns count characters, not bytes. A line longer than a screen is shown around the place
// only, cut with …, however long it is. Nothing is printed: the complaint is a string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::language {

struct Position {
  std::size_t line = 1, column = 1;
};

// Where the byte at `offset` stands. An offset behind the text is taken as its end.
Position position(std::string_view text, std::size_t offset);

// Each line ends in a newline. An error without a place is its message and hint only.
std::string complain(const Error& error, std::string_view text);

}  // namespace weft::language
