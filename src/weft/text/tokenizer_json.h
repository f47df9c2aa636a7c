// weft/text/tokenizer_json.h -- reads the parts of a tokenizer.json.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/text/pattern.h"

namespace weft::text {

// Ids are small numbers, since tables are indexed by them.
constexpr std::int32_t kMostTokens = 1 << 24;

// "pre_tokenizer: unknown type 'X'".
Error unknown_type(const formats::JsonNode& node, std::string_view type);

// Missing and null values are `otherwise`.
Result<bool> truth_or(const formats::JsonNode& node, const char* key, bool otherwise);
Result<std::string> text_or(const formats::JsonNode& node, const char* key, std::string_view otherwise);

// A string of one character, as in "replacement": "▁".
Result<char32_t> one_character(const formats::JsonNode& node, const char* key);

// {"String": "a"} or {"Regex": "a+"}.
Result<Pattern> read_pattern(const formats::JsonNode& node, const char* key);

}  // namespace weft::text
