#include "weft/rule/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace weft::rule {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 24;

constexpr std::array<std::string_view, 23> kNames = {"the end of the text",
                                                     "a name",
                                                     "a whole number",
                                                     "a number",
                                                     "a quoted word",
                                                     "'('",
                                                     "')'",
                                                     "'['",
                                                     "']'",
                                                     "','",
                                                     "':'",
                                                     "'.'",
                                                     "'+'",
                                                     "'-'",
                                                     "'*'",
                                                     "'/'",
                                                     "'%'",
                                                     "'='",
                                                     "'!='",
                                                     "'<'",
                                                     "'<='",
                                                     "'>'",
                                                     "'>='"};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return starts_word(c) || is_digit(c); }

std::uint32_t narrow(std::size_t place) { return static_cast<std::uint32_t>(place); }

}  // namespace

std::string_view name(Mark mark) { return kNames[static_cast<std::size_t>(mark)]; }

Reader::Reader(std::string_view text) : text_(text) {
  if (text.size() >= kLongestText) {
    text_ = {};
    error_ = user_error(fmt::format("a rule file has at most {} bytes, found {}", kLongestText, text.size()));
    return;
  }
  advance();
  last_end_ = 0;
}

Piece Reader::scan(std::size_t& place, std::optional<Error>& mistake) const {
  while (place < text_.size() && (is_blank(text_[place]) || text_[place] == '#'))
    if (text_[place] == '#')
      place = std::min(text_.find('\n', place), text_.size());
    else
      ++place;
  const std::size_t start = place;
  const auto made = [&](Mark mark, std::size_t length) {
    place = start + length;
    return Piece{mark, {narrow(start), narrow(length)}};
  };
  if (start == text_.size()) return made(Mark::end, 0);
  const std::string_view rest = text_.substr(start);
  const char c = rest[0], next = rest.size() > 1 ? rest[1] : '\0';
  if (starts_word(c)) {
    const auto end = std::ranges::find_if_not(rest, in_word);
    return made(Mark::word, static_cast<std::size_t>(end - rest.begin()));
  }
  if (is_digit(c)) {
    std::size_t length = 1;
    bool whole = true;
    const auto at = [&](std::size_t k) { return k < rest.size() ? rest[k] : '\0'; };
    while (is_digit(at(length))) ++length;
    if (at(length) == '.' && is_digit(at(length + 1))) {
      whole = false;
      ++length;
      while (is_digit(at(length))) ++length;
    }
    if (at(length) == 'e' || at(length) == 'E') {
      const std::size_t sign = at(length + 1) == '-' || at(length + 1) == '+' ? 2 : 1;
      if (is_digit(at(length + sign))) {
        whole = false;
        length += sign;
        while (is_digit(at(length))) ++length;
      }
    }
    return made(whole ? Mark::number : Mark::real, length);
  }
  if (c == '\'') {
    const std::size_t end = rest.find_first_of("'\n", 1);
    if (end == rest.npos || rest[end] == '\n') {
      mistake = user_error("a quoted word has no end", "close it with '", {narrow(start), 1});
      return made(Mark::end, 0);
    }
    return made(Mark::quoted, end + 1);
  }
  constexpr std::string_view kSingles = "()[],:.+-*/%=";
  if (const std::size_t which = kSingles.find(c); which != kSingles.npos)
    return made(static_cast<Mark>(static_cast<std::size_t>(Mark::left_paren) + which), 1);
  if (c == '!' && next == '=') return made(Mark::not_equal, 2);
  if (c == '<') {
    if (next == '>') return made(Mark::not_equal, 2);
    return next == '=' ? made(Mark::less_equal, 2) : made(Mark::less, 1);
  }
  if (c == '>') return next == '=' ? made(Mark::greater_equal, 2) : made(Mark::greater, 1);
  const bool printable = c > ' ' && c < 127;
  mistake = user_error(
      printable ? fmt::format("nothing in a rule begins with '{}'", c)
                : fmt::format("nothing in a rule begins with byte {}", +static_cast<unsigned char>(c)),
      "", {narrow(start), 1});
  return made(Mark::end, 0);
}

void Reader::advance() {
  last_end_ = piece_.span.offset + piece_.span.length;
  if (failed()) return;
  piece_ = scan(place_, error_);
}

Mark Reader::after() const {
  std::size_t place = place_;
  std::optional<Error> ignored;
  return failed() ? Mark::end : scan(place, ignored).mark;
}

bool Reader::touches_next() const { return place_ < text_.size() && !is_blank(text_[place_]); }

bool Reader::take(Mark mark) {
  if (!at(mark)) return false;
  advance();
  return true;
}

bool Reader::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  advance();
  return true;
}

void Reader::expect(Mark mark) {
  if (!take(mark)) fail_expected(name(mark));
}

std::string_view Reader::word(std::string_view what) {
  if (!at(Mark::word)) {
    fail_expected(what);
    return {};
  }
  const std::string_view text = spelling();
  advance();
  return text;
}

std::int64_t Reader::number() {
  const std::string_view text = spelling();
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    fail_at(piece_.span, fmt::format("number too large: {}", text));
  advance();
  return value;
}

double Reader::real() {
  const std::string_view text = spelling();
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc() ||
      !std::isfinite(value))
    fail_at(piece_.span, fmt::format("number out of range: {}", text));
  advance();
  return value;
}

std::string_view Reader::line() {
  if (failed()) return {};
  const std::size_t end = std::min(text_.find('\n', place_), text_.size());
  std::string_view rest = text_.substr(place_, end - place_);
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
  place_ = end;
  piece_.span = {narrow(end), 0};
  advance();
  return rest;
}

Span Reader::since(Span from) const {
  return {from.offset, narrow(std::max<std::size_t>(last_end_, from.offset + 1)) - from.offset};
}

void Reader::fail_at(Span span, std::string message, std::string hint) {
  if (failed()) return;
  if (!span.known() && !text_.empty())  // the end of the text: point at its last character
    span = {narrow(std::min<std::size_t>(span.offset, text_.size()) - (span.offset > 0 ? 1 : 0)), 1};
  error_ = user_error(std::move(message), std::move(hint), span);
  piece_ = {Mark::end, {narrow(text_.size()), 0}};
  place_ = text_.size();
}

void Reader::fail_expected(std::string_view what, std::string hint) {
  const std::string found = at(Mark::end) ? "the end of the text" : fmt::format("'{}'", spelling());
  fail_at(piece_.span, fmt::format("expected {}, found {}", what, found), std::move(hint));
}

}  // namespace weft::rule
