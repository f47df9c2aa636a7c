// weft/formats/json_node.h -- a JSON value that knows its path, for error messages.
//
//   WEFT_TRY(root, parse_json(text));
//   const JsonNode top(root);
//   WEFT_TRY(gpus, top.list("gpus"));           // error: expected a list in gpus, found a string
//   WEFT_TRY(id, gpus[2].whole("id", 0, 7));    // error: gpus[2].id: expected 0 to 7, found 9
//
// parse_json() rejects input that would exhaust a reader: more than 256 MiB, 64 levels or 16
// million values. It also rejects duplicate keys in an object.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/base/result.h"

namespace weft::formats {

using Json = nlohmann::json;

Result<Json> parse_json(std::string_view text);

// Must not outlive the value and its parent nodes.
class JsonNode {
 public:
  explicit JsonNode(const Json& value) : value_(&value) {}

  std::string path() const;  // "gpus[2].threadblocks[0].ops[5].name"; "" at the top
  // The path, as in "gpus[2].id: ", followed by the text.
  Error error(std::string_view text, std::string hint = {}) const;

  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  // Whether it has the key with a value other than null.
  bool sets(const char* key) const { return has(key) && !value_->at(key).is_null(); }
  const Json& value() const { return *value_; }
  Status expect_object() const;

  // The following fail if this is not an object.
  Result<JsonNode> at(const char* key) const;
  Result<std::vector<JsonNode>> list(const char* key) const;           // required
  Result<std::vector<JsonNode>> optional_list(const char* key) const;  // empty if missing
  Result<std::int32_t> whole(const char* key, std::int32_t least, std::int32_t most) const;
  Result<std::vector<std::int32_t>> wholes(const char* key, std::int32_t least, std::int32_t most) const;
  Result<std::uint64_t> size(const char* key, std::uint64_t otherwise) const;  // `otherwise` if missing
  Result<double> number(const char* key, double otherwise) const;              // finite
  Result<bool> truth(const char* key, bool otherwise) const;
  Result<std::string_view> text(const char* key) const;  // valid as long as the value

  Result<std::vector<std::string_view>> texts(const char* key) const;
  // Fails on any other key.
  Status expect_only(std::span<const std::string_view> keys) const;

  // This value itself.
  Result<std::int32_t> whole(std::int32_t least, std::int32_t most) const;
  Result<std::vector<JsonNode>> items() const;  // items of a list: spec[1] has spec[1][0], spec[1][1]

 private:
  JsonNode(const Json& value, const JsonNode* parent, const char* key, std::size_t index)
      : value_(&value), parent_(parent), key_(key), index_(index) {}

  Result<std::vector<JsonNode>> children(const char* key, const Json& value) const;

  static constexpr std::size_t kNoIndex = SIZE_MAX;

  const Json* value_;
  const JsonNode* parent_ = nullptr;
  const char* key_ = nullptr;
  std::size_t index_ = kNoIndex;
};

}  // namespace weft::formats
