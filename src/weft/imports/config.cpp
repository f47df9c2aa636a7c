#include "weft/imports/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

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

// Of transformers and its savers: they say nothing of what is computed.
constexpr const char* kHarmless[] = {"_name_or_path",
                                     "_attn_implementation",
                                     "_attn_implementation_autoset",
                                     "_commit_hash",
                                     "architectures",
                                     "auto_map",
                                     "begin_suppress_tokens",
                                     "bos_token_id",
                                     "chunk_size_feed_forward",
                                     "decoder_start_token_id",
                                     "dtype",
                                     "eos_token_id",
                                     "finetuning_task",
                                     "gradient_checkpointing",
                                     "id2label",
                                     "is_encoder_decoder",
                                     "keys_to_ignore_at_inference",
                                     "label2id",
                                     "license",
                                     "mlx",
                                     "model_type",
                                     "output_attentions",
                                     "output_hidden_states",
                                     "output_past",
                                     "pad_token_id",
                                     "prefix",
                                     "problem_type",
                                     "return_dict",
                                     "return_dict_in_generate",
                                     "sep_token_id",
                                     "task_specific_params",
                                     "tokenizer_class",
                                     "torch_dtype",
                                     "torchscript",
                                     "transformers_version",
                                     "transformers.js_config",
                                     "unsloth_version",
                                     "use_bfloat16",
                                     "use_cache"};

}  // namespace

Status Config::expect_object() const {
  if (json_->is_object()) return {};
  return user_error(
      fmt::format("{}expected an object, found {}", path_.empty() ? "" : path_ + ": ", found_text(*json_)));
}

const Json* Config::find(const char* key) {
  if (!json_->is_object()) return nullptr;
  const auto at = json_->find(key);
  if (at == json_->end()) return nullptr;
  read_.insert(key);
  return at->is_null() ? nullptr : &*at;
}

bool Config::has(const char* key) const {
  return json_->is_object() && json_->contains(key) && !(*json_)[key].is_null();
}

Error Config::wrong(const char* key, std::string_view expected) const {
  return user_error(
      fmt::format("{}{}: expected {}, found {}", path_, key, expected, found_text((*json_)[key])));
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

Result<bool> Config::truth_or(const char* key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
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
          fmt::format("{}{}[{}]: expected a word, found {}", path_, key, words.size(), found_text(item)));
    words.push_back(item.get<std::string>());
  }
  return words;
}

Result<Config> Config::object(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return user_error(fmt::format("expected {}{}, found none", path_, key));
  if (!value->is_object()) return wrong(key, "an object");
  return Config(*value, fmt::format("{}{}.", path_, key));
}

std::int64_t Config::entries(const char* key) {
  const Json* value = find(key);
  return value != nullptr && value->is_object() ? static_cast<std::int64_t>(value->size()) : 0;
}

Status Config::expect(const char* key, bool only) {
  WEFT_TRY(truth, truth_or(key, only));
  if (truth == only) return {};
  return wrong(key, fmt::format("{}, which is all that Weft knows", only));
}

Status Config::expect_word(const char* key, std::string_view only, std::string hint) {
  WEFT_TRY(word, word_or(key, only));
  if (word == only) return {};
  Error error = wrong(key, fmt::format("'{}', which is all that Weft knows", only));
  error.hint = std::move(hint);
  return error;
}

Status Config::refuse(const char* key, std::string_view why, std::string hint) const {
  return user_error(fmt::format("{}{}: {}, found {}", path_, key, why, found_text((*json_)[key])),
                    std::move(hint));
}

void Config::ignore(std::initializer_list<const char*> keys) { read_.insert(keys.begin(), keys.end()); }

std::string Config::unread() const {
  std::vector<std::string> left;
  for (const auto& [key, value] : json_->items())
    if (!read_.contains(key) && std::ranges::find(kHarmless, key, [](const char* word) {
                                  return std::string_view(word);
                                }) == std::end(kHarmless))
      left.push_back(formats::shown(key));
  if (left.empty()) return {};
  return fmt::format("not known, and taken to change nothing: {}", fmt::join(left, ", "));
}

}  // namespace weft::imports
