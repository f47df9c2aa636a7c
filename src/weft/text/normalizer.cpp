#include "weft/text/normalizer.h"

#include <memory>
#include <string_view>

#include "weft/text/byte_alphabet.h"
#include "weft/text/character_map.h"
#include "weft/text/code_points.h"
#include "weft/text/tokenizer_json.h"
#include "weft/text/unicode.h"
#include "weft/text/unicode_forms.h"

namespace weft::text {
namespace {

using formats::JsonNode;
using NormalizerStep = std::function<Result<std::string>(std::string)>;

NormalizerStep form_step(NormalForm form) {
  return [form](const std::string& text) -> Result<std::string> { return normal_form(text, form); };
}

// The normalizer of translation models: removes control characters, and makes layout characters and
// characters without width blanks.
std::string normalize_for_translation(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const char32_t v = c.value;
    const bool removed = (v >= 0x01 && v <= 0x08) || v == 0x0B || (v >= 0x0E && v <= 0x1F) || v == 0x7F ||
                         v == 0x8F || v == 0x9F;
    const bool blank = v == 0x09 || v == 0x0A || v == 0x0C || v == 0x0D || v == 0x1680 ||
                       (v >= 0x200B && v <= 0x200F) || v == 0x2028 || v == 0x2029 || v == 0x2581 ||
                       v == 0xFEFF || v == 0xFFFD;
    if (blank)
      out += ' ';
    else if (!removed)
      out += text.substr(at, c.length);
    at += c.length;
  }
  return out;
}

std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty() && is_white_space(code_point_at(text, 0).value))
    text.remove_prefix(code_point_at(text, 0).length);
  while (right && !text.empty() && is_white_space(code_point_before(text, text.size()).value))
    text.remove_suffix(code_point_before(text, text.size()).length);
  return std::string(text);
}

Result<NormalizerStep> read_replace(const JsonNode& node) {
  WEFT_TRY(pattern, read_pattern(node, "pattern"));
  WEFT_TRY(content, node.text("content"));
  return NormalizerStep(
      [pattern, content = std::string(content)](const std::string& text) -> Result<std::string> {
        WEFT_TRY(matches, pattern.find_all(text));
        std::string out;
        std::size_t done = 0;
        for (const Match& match : matches) {
          out.append(text, done, match.begin - done);
          out += content;
          done = match.end;
        }
        out.append(text, done);
        return out;
      });
}

Result<NormalizerStep> read_character_map(const JsonNode& node) {
  if (!node.sets("precompiled_charsmap"))
    return NormalizerStep([](std::string text) -> Result<std::string> { return text; });
  WEFT_TRY(base64, node.text("precompiled_charsmap"));
  auto parsed = CharacterMap::parse(base64);
  if (!parsed.ok()) return node.error(parsed.error().message, parsed.error().hint);
  const auto map = std::make_shared<const CharacterMap>(std::move(parsed).value());
  return NormalizerStep([map](const std::string& text) -> Result<std::string> { return map->apply(text); });
}

Result<NormalizerStep> read_step(const JsonNode& node, std::string_view type) {
  if (type == "NFC") return form_step(NormalForm::nfc);
  if (type == "NFD") return form_step(NormalForm::nfd);
  if (type == "NFKC") return form_step(NormalForm::nfkc);
  if (type == "NFKD") return form_step(NormalForm::nfkd);
  if (type == "Replace") return read_replace(node);
  if (type == "Precompiled") return read_character_map(node);
  if (type == "BertNormalizer" || type == "Bert") return read_bert_normalizer(node);
  if (type == "Lowercase")
    return NormalizerStep([](const std::string& text) -> Result<std::string> { return lowercase(text); });
  if (type == "StripAccents")
    return NormalizerStep([](const std::string& text) -> Result<std::string> { return without_marks(text); });
  if (type == "Nmt")
    return NormalizerStep(
        [](const std::string& text) -> Result<std::string> { return normalize_for_translation(text); });
  if (type == "ByteLevel")
    return NormalizerStep([](const std::string& text) -> Result<std::string> {
      std::string out;
      append_byte_characters(out, text);
      return out;
    });
  if (type == "Prepend") {
    WEFT_TRY(prefix, node.text("prepend"));
    return NormalizerStep([prefix = std::string(prefix)](const std::string& text) -> Result<std::string> {
      return text.empty() ? text : prefix + text;
    });
  }
  if (type == "Strip") {
    WEFT_TRY(left, truth_or(node, "strip_left", true));
    WEFT_TRY(right, truth_or(node, "strip_right", true));
    return NormalizerStep(
        [left, right](const std::string& text) -> Result<std::string> { return strip(text, left, right); });
  }
  return unknown_type(node, type);
}

}  // namespace

Status Normalizer::add(const JsonNode& node) {
  WEFT_TRY(type, node.text("type"));
  if (type == "Sequence") {
    WEFT_TRY(parts, node.list("normalizers"));
    for (const JsonNode& part : parts) WEFT_TRY_STATUS(add(part));
    return {};
  }
  WEFT_TRY(step, read_step(node, type));
  steps_.push_back(std::move(step));
  return {};
}

Result<Normalizer> Normalizer::read(const JsonNode& node) {
  Normalizer normalizer;
  WEFT_TRY_STATUS(normalizer.add(node));
  return normalizer;
}

Result<std::string> Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    auto changed = step(std::move(text));
    if (!changed.ok()) return changed;
    text = std::move(changed).value();
  }
  return text;
}

}  // namespace weft::text
