// weft/translate/imports/config.h -- the fields of a model's config.json, each read once and remembered.
//
//   Config config(json);
//   WEFT_TRY(d, config.size("hidden_size"));                 // error: expected hidden_size, found none
//   WEFT_TRY(h, config.size_or("num_key_value_heads", 32));  // null counts as absent, and as false
//   config.unread();                                         // fields that no table and no reader knows
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/translate/imports/fields.h"

namespace weft::imports {

class Config {
 public:
  // REQUIRES: `json` and `table` outlive it. `path`: where it stands in the file, "rope_scaling.". Of an object within
  // the file, which has no table, all fields that are read are known.
  explicit Config(const formats::Json& json, const FieldTable* table = nullptr, std::string path = {})
      : json_(&json), table_(table), path_(std::move(path)) {}

  Status expect_object() const;
  // Fails where a field of the table that has one value, or is a second name, says otherwise.
  Status expect_table();
  bool has(const char* key) const;      // and it is not null
  bool is_null(const char* key) const;  // which a class may take for something else than absence
  // Whole, from 1 to 2^31 - 1.
  Result<std::int64_t> size(const char* key);
  Result<std::int64_t> size_or(const char* key, std::int64_t otherwise);
  Result<std::int64_t> count_or(const char* key, std::int64_t otherwise);    // from 0 on
  Result<double> number_or(const char* key, double otherwise);               // finite
  Result<double> rate_or(const char* key, double otherwise);                 // from 0 to below 1
  Result<std::int64_t> integer_or(const char* key, std::int64_t otherwise);  // of either sign
  Result<bool> truth_or(const char* key, bool otherwise);
  Result<std::string> word_or(const char* key, std::string_view otherwise);
  Result<std::vector<std::string>> words(const char* key);  // empty when absent
  Result<std::vector<double>> numbers(const char* key);     // empty when absent
  Result<Config> object(const char* key);                   // must be there
  Result<std::int64_t> entries(const char* key);            // of an object; 0 when absent

  Status refuse(const char* key, std::string_view why, std::string hint = {}) const;

  // What is left, by name: also of an object within, whose reader hands it over.
  void hand_over(const Config& within);
  const std::string& path() const { return path_; }
  // A sentence; empty when nothing is left.
  std::string unread() const;

 private:
  const formats::Json* find(const char* key);
  std::vector<std::string> left() const;
  Error wrong(std::string_view key, std::string_view expected) const;

  const formats::Json* json_;
  const FieldTable* table_;
  std::string path_;
  std::set<std::string> read_;
  std::vector<std::string> left_within_;
};

}  // namespace weft::imports
