// weft/app/explain/lines.h -- text that fits a width.
//
//   cut("gather, slice, add", 12)             gather, sli…
//   wrap("memory 68 GiB: a, b, c", 14)        memory 68 GiB:
//                                               a, b, c
// Widths count code points: a reader's columns, as long as nobody writes wide letters.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::explain {

// Where nobody knows how wide the reader's screen is: in a file, a pipe, a test.
inline constexpr std::size_t kUsualWidth = 100;
// Narrower is taken for this: a table of one letter a column helps nobody.
inline constexpr std::size_t kLeastWidth = 40;

std::size_t columns(std::string_view text);

// The text, or as much of its beginning as fits before an ellipsis. `width` is at least 1.
std::string cut(std::string_view text, std::size_t width);

// Broken at spaces, best behind a comma, semicolon or colon; a word that is too long by itself after a comma,
// or else where the width ends. The first line may be `first` long, the others `rest`.
std::vector<std::string> broken(std::string_view text, std::size_t first, std::size_t rest);

// Each line of the text broken to the width, what follows indented; ends in a newline unless empty.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 2);

// A page that was written for wide screens: paragraphs flow, what is indented keeps its indent, and what stands in two
// columns goes on in the second. What fits stays as it is.
std::string wrap_page(std::string_view text, std::size_t width);

}  // namespace weft::explain
