// weft/translate/imports/config.h -- a config.json, with a record of the fields that were read.
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
  // `path` is the position in the file, such as "rope_scaling.". A nested object has no table: all
  // its fields that are read count as known. REQUIRES: `json` and `table` outlive it.
  explicit Config(const formats::Json& json, const FieldTable* table = nullptr, std::string path = {})
      : json_(&json), table_(table), path_(std::move(path)) {}

  Status expect_object() const;
  // Fails if a field that the table restricts to one value, or declares as an alias, has another
  // value.
  Status expect_table();
  bool has(const char* key) const;      // present and not null
  bool is_null(const char* key) const;  // a class may treat null differently from absence
  // An integer from 1 to 2^31 - 1.
  Result<std::int64_t> size(const char* key);
  Result<std::int64_t> size_or(const char* key, std::int64_t otherwise);
  Result<std::int64_t> count_or(const char* key, std::int64_t otherwise);    // at least 0
  Result<double> number_or(const char* key, double otherwise);               // finite
  Result<double> rate_or(const char* key, double otherwise);                 // in [0, 1)
  Result<std::int64_t> integer_or(const char* key, std::int64_t otherwise);  // may be negative
  Result<bool> truth_or(const char* key, bool otherwise);
  Result<std::string> word_or(const char* key, std::string_view otherwise);
  Result<std::vector<std::string>> words(const char* key);  // empty when absent
  Result<std::vector<double>> numbers(const char* key);     // empty when absent
  Result<Config> object(const char* key);                   // required
  Result<std::int64_t> entries(const char* key);            // number of an object's fields; 0 when absent

  Status refuse(const char* key, std::string_view why, std::string hint = {}) const;

  // Adds the unread fields of a nested object to this one's.
  void hand_over(const Config& within);
  const std::string& path() const { return path_; }
  // A sentence that names the unread fields; empty if there are none.
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
