// weft/collectives/chunks/lexicon.h -- the words and signs of the texts of this folder: algorithms, programs, moves.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/lexer.h"

namespace weft::collective {

extern const Lexicon kLexicon;

std::string quote(std::string_view text);  // "it's" is 'it''s'
// A name as the texts write it: plain where it is one, quoted where not.
std::string print_name(std::string_view name);

}  // namespace weft::collective
