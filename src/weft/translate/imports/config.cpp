#include "weft/translate/imports/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/nearest.h"
#include "weft/formats/value.h"

namespace weft::imports {
namespace {

using formats::Json;

constexpr std::int64_t kMostConfigSize = std::numeric_limits<std::int32_t>::max();

std::string found_text(const Json& value) {
  if (value.is_string()) return fmt::format("'{}'", formats::shown(value.get_ref<const std::string&>()));
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.dump();
}

}  // namespace

Status Config::expect_object() const {
  if (json_->is_object()) return {};
  return user_error(
      fmt::format("{}expected an object, found {}", path_.empty() ? "" : path_ + ": ", found_text(*json_)));
}

Status Config::expect_table() {
  for (const auto& [key, value] : json_->items()) {
    const Field* field = table_->find(key);
    if (field == nullptr || value.is_null()) continue;
    if (field->use == Use::only) {
      WEFT_TRY(wanted, formats::parse_json(field->detail));
      if (value != wanted)
        return wrong(key, fmt::format("{}, the only value that Weft supports", found_text(wanted)));
    }
    if (field->use == Use::same_as) {
      const auto same = json_->find(std::string(field->detail));
      if (same == json_->end())
        return user_error(fmt::format("expected {}, found {} alone", field->detail, key),
                          fmt::format("{} is its alias", key));
      if (value != *same) return wrong(key, fmt::format("{} as {} has it", found_text(*same), field->detail));
    }
  }
  return {};
}

const Json* Config::find(const char* key) {
  WEFT_CHECK(table_ == nullptr || (table_->find(key) != nullptr && table_->find(key)->use == Use::honoured),
             fmt::format("{} is read and not called honoured", key));
  if (!json_->is_object()) return nullptr;
  const auto at = json_->find(key);
  if (at == json_->end()) return nullptr;
  read_.insert(key);
  return at->is_null() ? nullptr : &*at;
}

bool Config::has(const char* key) const {
  return json_->is_object() && json_->contains(key) && !(*json_)[key].is_null();
}

bool Config::is_null(const char* key) const {
  return json_->is_object() && json_->contains(key) && (*json_)[key].is_null();
}

Error Config::wrong(std::string_view key, std::string_view expected) const {
  return user_error(fmt::format("{}{}: expected {}, found {}", path_, key, expected,
                                found_text((*json_)[std::string(key)])));
}

Result<std::int64_t> Config::size(const char* key) {
  if (!has(key)) return user_error(fmt::format("expected {}{}, found none", path_, key));
  return size_or(key, 1);
}

Result<std::int64_t> Config::size_or(const char* key, std::int64_t otherwise) {
  WEFT_TRY(number, count_or(key, otherwise));
  if (number < 1) return wrong(key, "at least 1");
  return number;
}

Result<std::int64_t> Config::count_or(const char* key, std::int64_t otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > kMostConfigSize)
    return wrong(key, fmt::format("a whole number up to {}", kMostConfigSize));
  return static_cast<std::int64_t>(value->get<std::uint64_t>());
}

Result<double> Config::number_or(const char* key, double otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number() || !std::isfinite(value->get<double>())) return wrong(key, "a number");
  return value->get<double>();
}

Result<double> Config::rate_or(const char* key, double otherwise) {
  WEFT_TRY(rate, number_or(key, otherwise));
  if (rate < 0 || rate >= 1 || (rate > 0 && rate < 1e-30)) return wrong(key, "a number from 0 to below 1");
  return rate;
}

Result<std::int64_t> Config::integer_or(const char* key, std::int64_t otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer() || value->get<double>() < -kMostConfigSize ||
      value->get<double>() > kMostConfigSize)
    return wrong(key, fmt::format("a whole number from -{0} to {0}", kMostConfigSize));
  return value->get<std::int64_t>();
}

Result<bool> Config::truth_or(const char* key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise && !is_null(key);  // null is false, like None in Python
  if (!value->is_boolean()) return wrong(key, "true or false");
  return value->get<bool>();
}

Result<std::string> Config::word_or(const char* key, std::string_view otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) return wrong(key, "a word");
  return value->get<std::string>();
}

Result<std::vector<std::string>> Config::words(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::vector<std::string>();
  if (!value->is_array()) return wrong(key, "a list of words");
  std::vector<std::string> words;
  for (const Json& item : *value) {
    if (!item.is_string())
      return user_error(
          fmt::format("{}{}[{}]: expected a string, found {}", path_, key, words.size(), found_text(item)));
    words.push_back(item.get<std::string>());
  }
  return words;
}

Result<std::vector<double>> Config::numbers(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::vector<double>();
  if (!value->is_array()) return wrong(key, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& item : *value) {
    if (!item.is_number() || !std::isfinite(item.get<double>()))
      return user_error(
          fmt::format("{}{}[{}]: expected a number, found {}", path_, key, numbers.size(), found_text(item)));
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

Result<Config> Config::object(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return user_error(fmt::format("expected {}{}, found none", path_, key));
  if (!value->is_object()) return wrong(key, "an object");
  return Config(*value, nullptr, fmt::format("{}{}.", path_, key));
}

Result<std::int64_t> Config::entries(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::int64_t{0};
  if (!value->is_object() || value->empty()) return wrong(key, "an object with entries");
  return static_cast<std::int64_t>(value->size());
}

Status Config::refuse(const char* key, std::string_view why, std::string hint) const {
  return user_error(fmt::format("{}{}: {}, found {}", path_, key, why, found_text((*json_)[key])),
                    std::move(hint));
}

std::vector<std::string> Config::left() const {
  std::vector<std::string> left = left_within_;
  for (const auto& [key, value] : json_->items()) {
    if (read_.contains(key) || (table_ != nullptr && table_->find(key) != nullptr)) continue;
    const std::string_view meant = table_ == nullptr ? "" : nearest(key, table_->names());
    left.push_back(path_ + formats::shown(key) + (meant.empty() ? "" : fmt::format(" (not {})", meant)));
  }
  return left;
}

void Config::hand_over(const Config& within) {
  for (std::string& key : within.left()) left_within_.push_back(std::move(key));
}

std::string Config::unread() const {
  const std::vector<std::string> names = left();
  if (names.empty()) return {};
  return fmt::format("unknown and ignored: {}", fmt::join(names, ", "));
}

}  // namespace weft::imports
