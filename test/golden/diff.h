// diff.h -- two texts line by line: "  same", "- only expected", "+ only found".
#pragma once
#include <string>
#include <string_view>

namespace weft::golden {

// Each line is indented by four and ends in a newline.
std::string diff(std::string_view expected, std::string_view found);

}  // namespace weft::golden
