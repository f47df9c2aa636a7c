// weft/collectives/chunks/lexicon.h -- the tokens of algorithms, programs and moves.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/lexer.h"

namespace weft::collective {

extern const Lexicon kLexicon;

std::string quote(std::string_view text);  // "it's" is 'it''s'
// A name as it appears in text: quoted unless it is a plain word.
std::string print_name(std::string_view name);

}  // namespace weft::collective
