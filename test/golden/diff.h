// diff.h -- the line-by-line difference of two texts: "  same", "- only expected", "+ only found".
#pragma once
#include <string>
#include <string_view>

namespace weft::golden {

// Each line is indented by four spaces and ends with a newline.
std::string diff(std::string_view expected, std::string_view found);

}  // namespace weft::golden
