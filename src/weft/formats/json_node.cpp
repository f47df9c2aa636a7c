#include "weft/formats/json_node.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{256} << 20;
constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kMostValues = std::size_t{16} << 20;

// Validates the text in one pass before any of it is stored.
class Scan : public nlohmann::json_sax<Json> {
 public:
  std::string problem;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(Json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& text) override {
    if (keys_.back().insert(text).second) return true;
    return fail(fmt::format("expected every key once in an object, found '{}' twice", shown(text)));
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail(fmt::format("expected JSON, found an error at byte {}", position));
  }

 private:
  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool value() {
    if (++values_ <= kMostValues) return true;
    return fail(fmt::format("expected at most {} values, found more", kMostValues));
  }
  bool open() {
    if (keys_.size() == kMostDepth)
      return fail(fmt::format("expected at most {} levels of nesting, found more", kMostDepth));
    keys_.emplace_back();
    return value();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // per open object or list
};

std::string found(const Json& value) {
  if (value.is_string()) return fmt::format("'{}'", shown(value.get_ref<const std::string&>()));
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.dump();
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (text.size() > kMostJsonBytes)
    return user_error(fmt::format("expected at most {} bytes, found {}", kMostJsonBytes, text.size()));
  // The parser treats a zero byte as the end of the text and would ignore the rest.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    return user_error(fmt::format("expected JSON, found an error at byte {}", zero + 1));
  Scan scan;
  if (!Json::sax_parse(text, &scan)) return user_error(std::move(scan.problem));
  return Json::parse(text, nullptr, false);
}

std::string JsonNode::path() const {
  if (parent_ == nullptr) return {};
  const std::string above = parent_->path();
  const bool has_key = *key_ != '\0';  // an item of a nested list has none
  const std::string own = fmt::format("{}{}{}", above, above.empty() || !has_key ? "" : ".", key_);
  return index_ == kNoIndex ? own : fmt::format("{}[{}]", own, index_);
}

Error JsonNode::error(std::string_view text, std::string hint) const {
  const std::string where = path();
  return user_error(fmt::format("{}{}{}", where, where.empty() ? "" : ": ", text), std::move(hint));
}

Status JsonNode::expect_object() const {
  if (value_->is_object()) return {};
  return error(fmt::format("expected an object, found {}", found(*value_)));
}

Result<JsonNode> JsonNode::at(const char* key) const {
  WEFT_TRY_STATUS(expect_object());
  const auto at = value_->find(key);
  if (at == value_->end()) return error(fmt::format("expected {}, found none", key));
  return JsonNode(*at, this, key, kNoIndex);
}

Result<std::vector<JsonNode>> JsonNode::items() const {
  if (!value_->is_array()) return error(fmt::format("expected a list, found {}", found(*value_)));
  return children("", *value_);
}

Result<std::vector<JsonNode>> JsonNode::children(const char* key, const Json& value) const {
  if (!value.is_array())
    return JsonNode(value, this, key, kNoIndex).error(fmt::format("expected a list, found {}", found(value)));
  std::vector<JsonNode> nodes;
  nodes.reserve(value.size());
  for (const Json& item : value) nodes.push_back(JsonNode(item, this, key, nodes.size()));
  return nodes;
}

Result<std::vector<JsonNode>> JsonNode::list(const char* key) const {
  WEFT_TRY(node, at(key));
  return children(key, *node.value_);
}

Result<std::vector<JsonNode>> JsonNode::optional_list(const char* key) const {
  WEFT_TRY_STATUS(expect_object());
  if (!has(key)) return std::vector<JsonNode>();
  return list(key);
}

Result<std::int32_t> JsonNode::whole(std::int32_t least, std::int32_t most) const {
  const auto refuse = [&] {
    if (most < least) return error(fmt::format("expected nothing to refer to, found {}", found(*value_)));
    if (most == least) return error(fmt::format("expected {}, found {}", least, found(*value_)));
    return error(fmt::format("expected {} to {}, found {}", least, most, found(*value_)));
  };
  if (!value_->is_number_integer()) return refuse();
  if (value_->is_number_unsigned() && !std::in_range<std::int32_t>(value_->get<std::uint64_t>()))
    return refuse();
  const auto number = value_->get<std::int64_t>();
  if (number < least || number > most) return refuse();
  return static_cast<std::int32_t>(number);
}

Result<std::int32_t> JsonNode::whole(const char* key, std::int32_t least, std::int32_t most) const {
  WEFT_TRY(node, at(key));
  return node.whole(least, most);
}

Result<std::vector<std::int32_t>> JsonNode::wholes(const char* key, std::int32_t least,
                                                   std::int32_t most) const {
  WEFT_TRY(nodes, list(key));
  std::vector<std::int32_t> numbers;
  numbers.reserve(nodes.size());
  for (const JsonNode& node : nodes) {
    WEFT_TRY(number, node.whole(least, most));
    numbers.push_back(number);
  }
  return numbers;
}

Result<std::uint64_t> JsonNode::size(const char* key, std::uint64_t otherwise) const {
  if (!has(key)) return otherwise;
  WEFT_TRY(node, at(key));
  if (!node.value_->is_number_unsigned())
    return node.error(fmt::format("expected a whole number, found {}", found(*node.value_)));
  return node.value_->get<std::uint64_t>();
}

Result<double> JsonNode::number(const char* key, double otherwise) const {
  if (!has(key)) return otherwise;
  WEFT_TRY(node, at(key));
  // The parser turns numbers too large for a double into infinity.
  if (!node.value_->is_number() || !std::isfinite(node.value_->get<double>()))
    return node.error(fmt::format("expected a number, found {}", found(*node.value_)));
  return node.value_->get<double>();
}

Result<bool> JsonNode::truth(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  WEFT_TRY(node, at(key));
  if (!node.value_->is_boolean())
    return node.error(fmt::format("expected true or false, found {}", found(*node.value_)));
  return node.value_->get<bool>();
}

Result<std::string_view> JsonNode::text(const char* key) const {
  WEFT_TRY(node, at(key));
  if (!node.value_->is_string())
    return node.error(fmt::format("expected a string, found {}", found(*node.value_)));
  return std::string_view(node.value_->get_ref<const std::string&>());
}

Result<std::vector<std::string_view>> JsonNode::texts(const char* key) const {
  WEFT_TRY(nodes, list(key));
  std::vector<std::string_view> texts;
  texts.reserve(nodes.size());
  for (const JsonNode& node : nodes) {
    if (!node.value_->is_string())
      return node.error(fmt::format("expected a string, found {}", found(*node.value_)));
    texts.emplace_back(node.value_->get_ref<const std::string&>());
  }
  return texts;
}

Status JsonNode::expect_only(std::span<const std::string_view> keys) const {
  WEFT_TRY_STATUS(expect_object());
  for (const auto& [key, value] : value_->items())
    if (std::ranges::find(keys, key) == keys.end())
      return error(fmt::format("expected no attribute '{}'", shown(key)));
  return {};
}

}  // namespace weft::formats
