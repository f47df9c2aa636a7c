#include "weft/text/tokenizer_json.h"

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/text/code_points.h"

namespace weft::text {

using formats::JsonNode;

Error unknown_type(const JsonNode& node, std::string_view type) {
  return node.error(fmt::format("the type '{}' is not supported", formats::shown(type)));
}

Result<bool> truth_or(const JsonNode& node, const char* key, bool otherwise) {
  if (!node.sets(key)) return otherwise;
  return node.truth(key, otherwise);
}

Result<std::string> text_or(const JsonNode& node, const char* key, std::string_view otherwise) {
  if (!node.sets(key)) return std::string(otherwise);
  WEFT_TRY(text, node.text(key));
  return std::string(text);
}

Result<char32_t> one_character(const JsonNode& node, const char* key) {
  WEFT_TRY(text, node.text(key));
  if (text.empty() || code_point_at(text, 0).length != text.size())
    return node.error(fmt::format("expected one character in {}, found '{}'", key, formats::shown(text)));
  return code_point_at(text, 0).value;
}

Result<Pattern> read_pattern(const JsonNode& node, const char* key) {
  WEFT_TRY(pattern, node.at(key));
  if (pattern.sets("String")) {
    WEFT_TRY(text, pattern.text("String"));
    return Pattern::literal(text);
  }
  WEFT_TRY(text, pattern.text("Regex"));
  auto parsed = Pattern::parse(text);
  if (!parsed.ok()) return pattern.error(parsed.error().message, parsed.error().hint);
  return parsed;
}

}  // namespace weft::text
