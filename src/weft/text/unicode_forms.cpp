#include "weft/text/unicode_forms.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "weft/base/check.h"
#include "weft/text/code_points.h"
#include "weft/text/unicode.h"

namespace weft::text {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string without(std::string_view text, Categories categories) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (c.value < 0x80 || !has_category(c.value, categories)) out += text.substr(at, c.length);
    at += c.length;
  }
  return out;
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE;
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  options |= compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* bytes = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  WEFT_CHECK(size >= 0, "the text is not UTF-8");
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.length;
    if (c.value == 0x130) {  // the one letter whose small form is two code points
      out += "i\xCC\x87";
      continue;
    }
    append_code_point(out, to_lower(c.value));
  }
  return out;
}

std::string without_marks(std::string_view text) { return without(text, kMark); }
std::string without_nonspacing_marks(std::string_view text) { return without(text, kNonspacingMark); }

std::vector<std::string_view> graphemes(std::string_view text) {
  std::vector<std::string_view> found;
  utf8proc_int32_t state = 0;
  std::size_t begin = 0;
  char32_t before = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool inside = at > begin;
    if (inside && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                   static_cast<utf8proc_int32_t>(c.value), &state)) {
      found.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    before = c.value;
    at += c.length;
  }
  if (begin < text.size()) found.push_back(text.substr(begin));
  return found;
}

}  // namespace weft::text
