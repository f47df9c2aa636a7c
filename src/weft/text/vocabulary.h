// weft/text/vocabulary.h -- the tokens of a model and their ids.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::text {

// Looks strings up by views, without a copy.
struct ViewHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

template <class T>
using TextMap = std::unordered_map<std::string, T, ViewHash, std::equal_to<>>;

class Vocabulary {
 public:
  // Reads {"a": 0, "b": 1}.
  static Result<Vocabulary> read(const formats::JsonNode& node);

  void add(std::string token, std::int32_t id);

  std::optional<std::int32_t> find(std::string_view token) const;
  std::optional<std::string_view> token(std::int32_t id) const;
  // The id of "<0x0A>", the token of a byte, if there is one.
  std::optional<std::int32_t> byte_token(char byte) const;

  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int32_t end() const { return static_cast<std::int32_t>(tokens_.size()); }  // above all ids

 private:
  TextMap<std::int32_t> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace weft::text
