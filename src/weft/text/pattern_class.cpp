#include "weft/text/pattern_class.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/text/code_points.h"

namespace weft::text {
namespace {

std::optional<unsigned> hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// The digits of \x20, \x{4e2d} and \u00e9, after the letter.
Result<char32_t> parse_code(PatternReader& reader, bool short_form) {
  const bool braces = short_form && reader.take("{");
  const std::size_t most = braces ? 8 : short_form ? 2 : 4;
  char32_t code = 0;
  std::size_t digits = 0;
  for (; digits < most && !reader.done(); ++digits) {
    const auto digit = hexadecimal_digit(reader.rest()[0]);
    if (!digit) break;
    code = code << 4 | *digit;
    reader.take_any();
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (digits == 0 || (!braces && digits < most) || (braces && !reader.take("}")) || code > 0x10FFFF ||
      surrogate)
    return reader.error("expected the hexadecimal number of a character");
  return code;
}

// \p{L}, \p{^L}, \P{L}, after the letter.
Result<CodePointSet> parse_property(PatternReader& reader, bool negated) {
  if (!reader.take("{")) return reader.error("expected { after \\p");
  if (reader.take("^")) negated = !negated;
  const std::size_t end = reader.rest().find('}');
  if (end == std::string_view::npos) return reader.error("expected } after \\p{");
  const std::string_view name = reader.rest().substr(0, end);
  CodePointSet set;
  if (!add_property(set, name)) return reader.error(fmt::format("unknown property \\p{{{}}}", name));
  set.negated = negated;
  reader.take(name);
  reader.take("}");
  return set;
}

CodePointSet one(char32_t c) {
  CodePointSet set;
  set.add(c);
  return set;
}

CodePointSet all_with(CodePointSet::Property property, bool negated) {
  CodePointSet set;
  set.properties.push_back(property);
  set.negated = negated;
  return set;
}

bool is_decimal(char32_t c) { return has_category(c, kDecimal); }

// [:alpha:] in a class, after the first bracket; nullopt if there is none.
Result<std::optional<CodePointSet>> parse_posix_class(PatternReader& reader) {
  if (!reader.rest().starts_with("[:")) return std::optional<CodePointSet>();
  const std::size_t end = reader.rest().find(":]");
  if (end == std::string_view::npos) return std::optional<CodePointSet>();
  std::string_view name = reader.rest().substr(2, end - 2);
  CodePointSet set;
  set.negated = name.starts_with("^");
  if (set.negated) name.remove_prefix(1);
  if (!add_posix_class(set, name)) return reader.error(fmt::format("unknown class [:{}:]", name));
  reader.take(reader.rest().substr(0, end + 2));
  return std::optional(std::move(set));
}

// A single character: the only element of a set that is not a class.
std::optional<char32_t> single(const CodePointSet& set) {
  if (set.negated || set.ranges.size() != 1 || !set.members.empty() || !set.properties.empty() ||
      set.categories != 0 || set.ranges[0].first != set.ranges[0].last)
    return std::nullopt;
  return set.ranges[0].first;
}

// One character or escape of a class.
Result<CodePointSet> parse_member(PatternReader& reader) {
  if (reader.take("\\")) {
    if (reader.take("b")) return one('\b');
    return parse_escape(reader);
  }
  return one(reader.take_any());
}

}  // namespace

bool PatternReader::take(std::string_view text) {
  if (!rest().starts_with(text)) return false;
  at_ += text.size();
  return true;
}

char32_t PatternReader::take_any() {
  const CodePoint c = code_point_at(pattern_, at_);
  at_ += c.length;
  return c.value;
}

Error PatternReader::error(std::string_view what) const {
  return user_error(fmt::format("{} at character {} of the pattern '{}'", what,
                                count_code_points(pattern_.substr(0, at_)) + 1, pattern_));
}

Result<CodePointSet> parse_escape(PatternReader& reader) {
  if (reader.done()) return reader.error("expected a character after \\");
  const PatternReader before = reader;
  const char32_t letter = reader.take_any();
  switch (letter) {
    case 'n': return one('\n');
    case 'r': return one('\r');
    case 't': return one('\t');
    case 'f': return one('\f');
    case 'v': return one('\v');
    case 'a': return one('\a');
    case 'e': return one(0x1B);
    case 's':
    case 'S': return all_with(is_white_space, letter == 'S');
    case 'd':
    case 'D': return all_with(is_decimal, letter == 'D');
    case 'w':
    case 'W': return all_with(is_pattern_word, letter == 'W');
    case 'p':
    case 'P': return parse_property(reader, letter == 'P');
    case 'x':
    case 'u': {
      WEFT_TRY(code, parse_code(reader, letter == 'x'));
      return one(code);
    }
    default: break;
  }
  const bool letter_or_digit = letter < 128 && is_word(letter) && letter != '_';
  if (letter_or_digit) return before.error(fmt::format("\\{} is not supported", static_cast<char>(letter)));
  return one(letter);
}

Result<CodePointSet> parse_class(PatternReader& reader, bool any_case, std::size_t depth) {
  if (depth > kMostPatternDepth) return reader.error("classes are nested too deep");
  CodePointSet set;
  const bool negated = reader.take("^");
  std::vector<CodePointSet> parts;  // separated by &&
  for (bool first = true;; first = false) {
    if (reader.done()) return reader.error("expected ] at the end of a class");
    if (reader.rest()[0] == ']' && !first) break;
    if (reader.take("&&")) {
      parts.push_back(std::exchange(set, {}));
      continue;
    }
    WEFT_TRY(posix, parse_posix_class(reader));
    if (posix) {
      set.members.push_back(std::move(*posix));
      continue;
    }
    if (reader.take("[")) {
      WEFT_TRY(inner, parse_class(reader, false, depth + 1));
      set.members.push_back(std::move(inner));
      continue;
    }
    WEFT_TRY(member, parse_member(reader));
    const auto from = single(member);
    const bool range = from && reader.rest().size() > 1 && reader.rest()[0] == '-' &&
                       reader.rest()[1] != ']' && reader.rest()[1] != '[';
    if (!range) {
      if (from)
        set.add(*from);
      else
        set.members.push_back(std::move(member));
      continue;
    }
    reader.take("-");
    WEFT_TRY(last, parse_member(reader));
    const auto to = single(last);
    if (!to || *to < *from) return reader.error("expected a range whose end is not below its begin");
    set.ranges.push_back({*from, *to});
  }
  reader.take("]");
  if (!parts.empty()) {
    CodePointSet all;
    all.members.push_back(std::move(parts[0]));
    for (std::size_t i = 1; i < parts.size(); ++i) all.also_in.push_back(std::move(parts[i]));
    all.also_in.push_back(std::move(set));
    set = std::move(all);
  }
  set.negated = negated;
  set.any_case = any_case;
  return set;
}

}  // namespace weft::text
