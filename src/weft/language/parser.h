// weft/language/parser.h -- from text to syntax.
//
//   WEFT_TRY(script, parse("SHOW MODELS; TRAIN mlp ON LOCAL 4 STEPS 20"));
//   script.statements[1]->as<syntax::Run>().steps;   // 20
//
// script    = [ statement ] { ";" [ statement ] }
//
// The other productions head the parse_*.cpp that read them. The first error ends the parse: it
// says what was expected and what was found, its span is the offending token, and its hint a
// remedy where one can be guessed. At the end of the text, the span is the one place behind the
// last token.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/language/syntax.h"

namespace weft::language {

// Reads a whole script. `text` must outlive the result. Time and memory are linear in its size.
Result<syntax::Script> parse(std::string_view text);

// How much of `text` its first statement takes, with the semicolon that ends it; npos while
// none does. A prompt reads on for as long as it is npos, and thereby lets strings, comments
// and statements span lines.
std::size_t statement_end(std::string_view text);

}  // namespace weft::language
