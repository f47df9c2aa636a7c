// weft/plan/graph/words.h -- how names stand in plan text: bare when they are plain words, else quoted.
//
//   d   block_2   "two words"   "3d"   "say \"d\""
#pragma once
#include <string>
#include <string_view>

namespace weft::plan {

// Before a state's name: how an output that updates the state is named.
constexpr std::string_view kNextWord = "next ";

std::string quote_unless_plain(std::string_view text);

// Appends without making a string in between.
void append_word(std::string& out, std::string_view text);

}  // namespace weft::plan
