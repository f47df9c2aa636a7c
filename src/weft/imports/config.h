// weft/imports/config.h -- the fields of a model's config.json, each read once and remembered.
//
//   Config config(json);
//   WEFT_TRY(d, config.size("hidden_size"));                 // error: expected hidden_size, found none
//   WEFT_TRY(h, config.size_or("num_key_value_heads", 32));  // null counts as absent
//   WEFT_TRY_STATUS(config.expect("is_decoder", false));     // a field that would change the arithmetic
//   config.notes();                                          // fields that nobody asked for
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::imports {

class Config {
 public:
  // REQUIRES: `json` outlives it. `path`: where it stands in the file, "rope_scaling.".
  explicit Config(const formats::Json& json, std::string path = {}) : json_(&json), path_(std::move(path)) {}

  Status expect_object() const;
  bool has(const char* key) const;  // and it is not null
  // Whole, from 1 to 2^31 - 1.
  Result<std::int64_t> size(const char* key);
  Result<std::int64_t> size_or(const char* key, std::int64_t otherwise);
  Result<std::int64_t> count_or(const char* key, std::int64_t otherwise);  // from 0 on
  Result<double> number_or(const char* key, double otherwise);             // finite
  Result<double> rate_or(const char* key, double otherwise);               // from 0 to below 1
  Result<bool> truth_or(const char* key, bool otherwise);
  Result<std::string> word_or(const char* key, std::string_view otherwise);
  Result<std::vector<std::string>> words(const char* key);  // empty when absent
  Result<Config> object(const char* key);                   // must be there
  std::int64_t entries(const char* key);                    // of an object; 0 when absent

  // Fails where the field says otherwise: Weft knows the one value alone.
  Status expect(const char* key, bool only);
  Status expect_word(const char* key, std::string_view only, std::string hint = {});
  Status refuse(const char* key, std::string_view why, std::string hint = {}) const;

  // Fields without a meaning for the arithmetic; they are not told of.
  void ignore(std::initializer_list<const char*> keys);
  // What is left, one sentence; empty when nothing is.
  std::string unread() const;

 private:
  const formats::Json* find(const char* key);
  Error wrong(const char* key, std::string_view expected) const;

  const formats::Json* json_;
  std::string path_;
  std::set<std::string> read_;
};

}  // namespace weft::imports
