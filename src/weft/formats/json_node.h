// weft/formats/json_node.h -- a JSON value that knows where it stands, so that an error can say so.
//
//   WEFT_TRY(root, parse_json(text));
//   const JsonNode top(root);
//   WEFT_TRY(gpus, top.list("gpus"));           // error: expected a list in gpus, found a string
//   WEFT_TRY(id, gpus[2].whole("id", 0, 7));    // error: gpus[2].id: expected 0 to 7, found 9
//
// parse_json() refuses what a hostile file would break a reader with: more than 256 MiB, 64 levels or 16
// million values, and a key that stands twice in one object.
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

// Lives no longer than the value and the nodes above it.
class JsonNode {
 public:
  explicit JsonNode(const Json& value) : value_(&value) {}

  std::string path() const;  // "gpus[2].threadblocks[0].ops[5].name"; "" at the top
  // "gpus[2].id: " and then the text.
  Error error(std::string_view text, std::string hint = {}) const;

  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  Status expect_object() const;

  // REQUIRES of the following: this is an object, or they are an error that says so.
  Result<JsonNode> at(const char* key) const;
  Result<std::vector<JsonNode>> list(const char* key) const;           // must be there
  Result<std::vector<JsonNode>> optional_list(const char* key) const;  // empty when it is not
  Result<std::int32_t> whole(const char* key, std::int32_t least, std::int32_t most) const;
  Result<std::vector<std::int32_t>> wholes(const char* key, std::int32_t least, std::int32_t most) const;
  Result<std::uint64_t> size(const char* key, std::uint64_t otherwise) const;  // `otherwise` when not there
  Result<double> number(const char* key, double otherwise) const;              // finite
  Result<bool> truth(const char* key, bool otherwise) const;
  Result<std::string_view> text(const char* key) const;  // lives as long as the value

  Result<std::vector<std::string_view>> texts(const char* key) const;
  // Fails on a key that is none of these.
  Status expect_only(std::span<const std::string_view> keys) const;

  // This value itself.
  Result<std::int32_t> whole(std::int32_t least, std::int32_t most) const;
  Result<std::vector<JsonNode>> items() const;  // of a list: spec[1] has the items spec[1][0], spec[1][1]

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
