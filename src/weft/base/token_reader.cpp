#include "weft/base/token_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"

namespace weft {

TokenReader::TokenReader(const Lexicon& lexicon, std::string_view text)
    : lexicon_(&lexicon),
      text_(text.size() < kLongestText ? text : std::string_view()),
      lexer_(lexicon, text_) {
  if (text.size() >= kLongestText)
    fail_at({}, fmt::format("text is too long: {} bytes", text.size()));
  else
    read();
}

void TokenReader::read() {
  token_ = lexer_.next();
  if (token_.kind != TokenKind::bad) return;
  error_ = lexer_.error();
  stop();
}

void TokenReader::stop() { token_ = {.span = {static_cast<std::uint32_t>(text_.size()), 0}}; }

std::string TokenReader::name(TokenKind kind) const {
  switch (kind) {
    case TokenKind::end: return "the end of the text";
    case TokenKind::word: return "a name";
    case TokenKind::number: return "a number";
    case TokenKind::quoted:
    case TokenKind::string: return "a quoted text";
    default: {
      const auto sign = std::ranges::find(lexicon_->signs, kind, &Sign::kind);
      WEFT_CHECK(sign != lexicon_->signs.end());
      return fmt::format("'{}'", sign->spelling);
    }
  }
}

Token TokenReader::after() const {
  if (failed()) return token_;
  Lexer ahead = lexer_;
  return ahead.next();
}

bool TokenReader::at_word(std::string_view word) const {
  if (!at(TokenKind::word)) return false;
  return lexicon_->words_have_case ? spelling() == word : same_word(spelling(), word);
}

void TokenReader::advance() {
  if (failed()) return;
  last_end_ = token_.end();
  read();
}

bool TokenReader::take(TokenKind kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

bool TokenReader::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  advance();
  return true;
}

void TokenReader::expect(TokenKind kind) {
  if (!take(kind)) fail_expected(name(kind));
}

void TokenReader::expect_word(std::string_view word) {
  if (take_word(word)) return;
  const std::string_view candidates[] = {word};
  fail_expected(word, candidates);
}

std::string_view TokenReader::name(std::string_view what) {
  if (!at(TokenKind::word)) {
    fail_expected(what);
    return {};
  }
  const std::string_view result = spelling();
  advance();
  return result;
}

std::string TokenReader::string(std::string_view what) {
  if (!at(TokenKind::string)) {
    fail_expected(what, "write it 'in single quotes'");
    return {};
  }
  std::string result = unquoted(*lexicon_, spelling());
  advance();
  return result;
}

std::uint64_t TokenReader::digits(std::string_view what, std::uint64_t most) {
  if (!at(TokenKind::number) || !token_.whole) {
    fail_expected(what);
    return 0;
  }
  const std::string_view text = spelling();
  std::uint64_t value = 0;
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
  if (!fits || value > most) {
    fail(fmt::format("number is too large: {}", text.substr(0, 40)), "numbers have 64 bits");
    return 0;
  }
  advance();
  return value;
}

std::int64_t TokenReader::number(std::string_view what) {
  return static_cast<std::int64_t>(digits(what, std::numeric_limits<std::int64_t>::max()));
}

std::int64_t TokenReader::wide_number(std::string_view what) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool negative = take(TokenKind::minus);
  const std::uint64_t value = digits(what, negative ? kMost + 1 : kMost);
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::int32_t TokenReader::small_number(std::string_view what) {
  const Token first = token_;
  const std::int64_t value = wide_number(what);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    fail_at(since(first), fmt::format("number is too large: {}", value), "numbers have 32 bits here");
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

double TokenReader::real(std::string_view what) {
  if (!at(TokenKind::number)) {
    fail_expected(what);
    return 0;
  }
  const std::string_view text = spelling();
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || !std::isfinite(value))
    fail(fmt::format("number out of range: {}", text.substr(0, 40)));
  advance();
  return value;
}

std::string_view TokenReader::line() {
  if (failed()) return {};
  const std::string_view rest = lexer_.rest_of_line();
  last_end_ = static_cast<std::uint32_t>(lexer_.place());
  read();
  return rest;
}

Span TokenReader::since(Span from) const {
  return {from.offset, last_end_ > from.offset ? last_end_ - from.offset : std::max(from.length, 1u)};
}

void TokenReader::fail_at(Span span, std::string message, std::string hint) {
  if (failed()) return;
  if (!span.known() && !text_.empty()) span = {last_end_, 1};
  error_ = user_error(std::move(message), std::move(hint), span);
  stop();
}

void TokenReader::fail_expected(std::string_view what, std::string hint) {
  if (failed()) return;
  const std::string found = at_end() ? name(TokenKind::end) : fmt::format("'{}'", spelling().substr(0, 40));
  fail(fmt::format("expected {}, found {}", what, found), std::move(hint));
}

void TokenReader::fail_expected(std::string_view what, std::span<const std::string_view> candidates) {
  if (failed()) return;
  fail_expected(what, at(TokenKind::word) ? did_you_mean(spelling(), candidates) : "");
}

}  // namespace weft
