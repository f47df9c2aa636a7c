// weft/plan/graph/words.h -- names in plan text: bare if they are plain words, else quoted.
//
//   d   block_2   "two words"   "3d"   "say \"d\""
#pragma once
#include <string>
#include <string_view>

namespace weft::plan {

// Prefix of an output that updates a state, before the state's name.
constexpr std::string_view kNextWord = "next ";

std::string quote_unless_plain(std::string_view text);

// Like quote_unless_plain(), but appends without a temporary string.
void append_word(std::string& out, std::string_view text);

}  // namespace weft::plan
