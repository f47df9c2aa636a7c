// weft/language/parser.h -- parses WeftQL text to a syntax tree.
//
//   WEFT_TRY(script, parse("SHOW MODELS; TRAIN mlp ON LOCAL 4 STEPS 20"));
//   script.statements[1]->as<syntax::Run>().steps;   // 20
//
// script    = [ statement ] { ";" [ statement ] }
//
// The other productions are at the top of the parse_*.cpp that implement them. The first error ends
// the parse. It says what was expected and what was found; its span is the offending token, and its
// hint a suggestion if there is one. At the end of the text, the span is the position after the
// last token.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/language/syntax.h"

namespace weft::language {

// Parses a whole script. `text` must outlive the result. Time and memory are linear in its size.
Result<syntax::Script> parse(std::string_view text);

// The length of the first statement in `text`, including its semicolon; npos if it is incomplete. A
// prompt reads more lines while this is npos, so strings, comments and statements may span lines.
std::size_t statement_end(std::string_view text);

}  // namespace weft::language
