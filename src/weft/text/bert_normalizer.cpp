// The normalizer of BERT: removes control characters, separates Chinese characters, strips accents
// and lowercases.
#include "weft/text/code_points.h"
#include "weft/text/normalizer.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/unicode.h"
#include "weft/text/unicode_forms.h"

namespace weft::text {
namespace {

bool is_layout(char32_t c) { return c == '\t' || c == '\n' || c == '\r'; }

// The blocks that BERT lists as Chinese characters. One begins later than in the Unicode standard
// (2B920 for 2B820); models were trained with it.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (is_layout(c.value) || is_white_space(c.value)) {
      const bool control = !is_layout(c.value) && has_category(c.value, kOther);
      if (!control) out += ' ';
    } else if (c.value != 0xFFFD && !has_category(c.value, kOther)) {
      out += text.substr(at, c.length);
    }
    at += c.length;
  }
  return out;
}

std::string separate_chinese(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool chinese = is_chinese(c.value);
    if (chinese) out += ' ';
    out += text.substr(at, c.length);
    if (chinese) out += ' ';
    at += c.length;
  }
  return out;
}

}  // namespace

Result<std::function<Result<std::string>(std::string)>> read_bert_normalizer(const formats::JsonNode& node) {
  WEFT_TRY(cleaned, truth_or(node, "clean_text", true));
  WEFT_TRY(chinese, truth_or(node, "handle_chinese_chars", true));
  WEFT_TRY(lower, truth_or(node, "lowercase", true));
  WEFT_TRY(accents, truth_or(node, "strip_accents", lower));
  return std::function<Result<std::string>(std::string)>([=](std::string text) -> Result<std::string> {
    if (cleaned) text = clean(text);
    if (chinese) text = separate_chinese(text);
    if (accents) text = without_nonspacing_marks(normal_form(text, NormalForm::nfd));
    if (lower) text = lowercase(text);
    return text;
  });
}

}  // namespace weft::text
