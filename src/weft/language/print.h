// weft/language/print.h -- prints syntax as text in canonical form.
//
//   create model m as select sum( (x*w) ) from x,w   -->   CREATE MODEL m
//                                                          AS SELECT sum(x * w) FROM x, w
//
// Keywords are in capitals. There are no comments and no redundant parentheses. Lines have at most
// 100 columns where possible. parse(print(script)) yields the same syntax as script.
#pragma once
#include <string>

#include "weft/language/syntax.h"

namespace weft::language {

// `all` puts parentheses around every operator, so that equal texts mean equal trees.
enum class Parentheses : std::uint8_t { needed, all };

// Every statement ends in a semicolon and starts on a new line.
std::string print(const syntax::Script& script, Parentheses parentheses = Parentheses::needed);

// Without semicolon or final newline.
std::string print(const syntax::Statement& statement, Parentheses parentheses = Parentheses::needed);

// On one line.
std::string print(const syntax::HintItem& item);
std::string print(const syntax::Query& query, Parentheses parentheses = Parentheses::needed);
std::string print(const syntax::Expression& expression, Parentheses parentheses = Parentheses::needed);

// A name as a script must spell it: in double quotes unless it is a plain one.
std::string print_name(std::string_view name);

}  // namespace weft::language
