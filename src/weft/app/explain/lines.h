// weft/app/explain/lines.h -- wraps and truncates text to a width.
//
//   cut("gather, slice, add", 12)             gather, sli…
//   wrap("memory 68 GiB: a, b, c", 14)        memory 68 GiB:
//                                               a, b, c
// Widths count code points, which equal terminal columns unless the text has wide characters.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::explain {

// Used if the terminal's width is unknown: in files, pipes and tests.
inline constexpr std::size_t kUsualWidth = 100;
// Smaller widths are raised to this, so that tables stay readable.
inline constexpr std::size_t kLeastWidth = 40;

std::size_t columns(std::string_view text);

// The text, truncated with an ellipsis if it is too long. `width` is at least 1.
std::string cut(std::string_view text, std::size_t width);

// Breaks at spaces, preferably after a comma, semicolon or colon. A word that is too long is broken
// after a comma, or else at the width. The first line has `first` columns, the others `rest`.
std::vector<std::string> broken(std::string_view text, std::size_t first, std::size_t rest);

// Wraps each line of the text, indenting continuation lines. The result ends in a newline unless
// empty.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 2);

// Wraps a page written for wide terminals: paragraphs are refilled, indented lines keep their
// indent, and two-column lines continue in the second column. Lines that fit are unchanged.
std::string wrap_page(std::string_view text, std::size_t width);

// Error messages: sentences are wrapped, a line above carets is cut to the part around them.
std::string wrap_complaint(std::string_view text, std::size_t width);

}  // namespace weft::explain
