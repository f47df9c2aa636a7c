#include "weft/language/complaint.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/utf8.h"

namespace weft::language {
namespace {

constexpr std::size_t kWidestShown = 100;  // columns of source printed
constexpr std::size_t kLead = 40;          // columns before the error in a truncated line

// Characters as printable() prints them: an invalid UTF-8 byte counts as one.
std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(1, utf8_length(text)));
  return count;
}

// The offset `count` characters after `from`, at most `limit`. An invalid UTF-8 byte counts as one
// character.
std::size_t forward(std::string_view text, std::size_t from, std::size_t count, std::size_t limit) {
  for (; from < limit && count > 0; --count)
    from += std::max<std::size_t>(1, utf8_length(text.substr(from, limit - from)));
  return from;
}

std::size_t backward(std::string_view text, std::size_t from, std::size_t count, std::size_t limit) {
  for (; from > limit && count > 0; --count) {
    std::size_t length = std::min<std::size_t>(4, from - limit);
    while (length > 1 && utf8_length(text.substr(from - length, length)) != length) --length;
    from -= length;
  }
  return from;
}

// Text that is safe to print: control characters become blanks, invalid UTF-8 becomes ?.
std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const bool control = begins_with_control(text);
    if (length == 0 || control)
      result += control ? ' ' : '?';
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return result;
}

// The part of a line around the error, and the carets under it.
struct Excerpt {
  std::string source, carets;
};

Excerpt excerpt(std::string_view text, std::size_t place, std::size_t length) {
  const std::size_t newline = place == 0 ? text.npos : text.rfind('\n', place - 1);
  const std::size_t begin = newline == text.npos ? 0 : newline + 1;
  std::size_t end = std::min(text.find('\n', place), text.size());
  if (end > begin && end > place && text[end - 1] == '\r') --end;

  std::size_t from = begin, to = forward(text, begin, kWidestShown, end);
  if (to < end || place > to) {
    from = backward(text, place, kLead, begin);
    // Near the end of a long line there is room for more text before the error.
    to = forward(text, from, kWidestShown, end);
    from = backward(text, to, kWidestShown, begin);
  }
  const std::size_t marked = std::max(std::min({place + length, end, to}), place);

  Excerpt result;
  result.source = printable(text.substr(from, to - from));
  if (from > begin) result.source.insert(0, "…");
  if (to < end) result.source += "…";
  result.carets.assign((from > begin ? 1 : 0) + columns(text.substr(from, place - from)), ' ');
  result.carets.append(std::max<std::size_t>(1, columns(text.substr(place, marked - place))), '^');
  return result;
}

}  // namespace

Position position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::string_view line = newline == before.npos ? before : before.substr(newline + 1);
  return {1 + static_cast<std::size_t>(std::ranges::count(before, '\n')), 1 + columns(line)};
}

std::string complain(const Error& error, std::string_view text) {
  std::string result;
  if (error.span.known()) {
    const std::size_t place = std::min<std::size_t>(error.span.offset, text.size());
    const auto [line, column] = position(text, place);
    const auto [source, carets] = excerpt(text, place, error.span.length);
    result = fmt::format("error {}:{}: {}\n  {}\n  {}\n", line, column, error.message, source, carets);
  } else {
    result = fmt::format("error: {}\n", error.message);
  }
  if (!error.hint.empty()) result += fmt::format("  {}\n", error.hint);
  return result;
}

}  // namespace weft::language
