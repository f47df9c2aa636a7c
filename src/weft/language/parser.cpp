#include "weft/language/parser.h"

#include <fmt/format.h>

#include "weft/language/grammar.h"
#include "weft/language/lexer.h"

namespace weft::language {

Grammar::Grammar(std::string_view text, Arena& arena) : text_(text), arena_(arena), lexer_(text) {
  next_ = lexer_.next();
  advance();
  last_end_ = 0;
}

void Grammar::advance() {
  last_end_ = token_.end();
  last_kind_ = token_.kind;
  token_ = next_;
  if (token_.kind == Kind::bad) [[unlikely]]
    return fail(lexer_.error());
  next_ = lexer_.next();
}

Result<std::span<const syntax::Statement* const>> Grammar::script() {
  Gather<const syntax::Statement*> statements(*this);
  while (accept(Kind::semicolon)) {
  }
  while (!at(Kind::end)) {
    statements.add(statement());
    if (!at(Kind::end)) expect(Kind::semicolon, "';'");
    while (accept(Kind::semicolon)) {
    }
  }
  if (error_) return *std::move(error_);
  return statements.finish();
}

Result<syntax::Script> parse(std::string_view text) {
  if (text.size() >= kLongestText)
    return user_error(fmt::format("script is too long: {} bytes, at most {}", text.size(), kLongestText - 1),
                      "split it into several files");
  syntax::Script script;
  script.text = text;
  WEFT_TRY(statements, Grammar(text, script.arena).script());
  script.statements = statements;
  return script;
}

std::size_t statement_end(std::string_view text) {
  // Truncated here; parse() reports the error for a text that is too long.
  Lexer lexer(text.substr(0, kLongestText - 1));
  for (;;) {
    const Token token = lexer.next();
    if (token.kind == TokenKind::semicolon) return token.end();
    if (token.kind == TokenKind::end || lexer.unfinished()) return std::string_view::npos;
  }
}

}  // namespace weft::language
