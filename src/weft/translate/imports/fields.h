// weft/translate/imports/fields.h -- every field of a config.json that is known, and what becomes of it.
//
//   {"head_dim", honoured}                      the model follows it
//   {"pad_token_id", honoured, "sequence"}      as far as a class with that head reads it
//   {"use_cache", harmless, "of generation"}    changes no number of the model, and why
//   {"mlp_bias", only, "false"}                 any other value is refused
//   {"hidden_size", same_as, "n_embd"}          a second name: refused unless both agree
//
// A family reads the fields that its table calls honoured, and no others (Config checks it). A field of the file that
// no table has is listed in a note, and a test changes every field of every table: what is honoured changes the import
// or ends it, what is harmless changes nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace weft::imports {

enum class Use : std::uint8_t { honoured, harmless, only, same_as };

struct Field {
  std::string_view name;
  Use use;
  std::string_view detail =
      {};  // honoured: heads, all where empty; harmless: why; only: JSON; same_as: a field
};

class FieldTable {
 public:
  // Where a field stands in there twice, the first counts.
  explicit FieldTable(const std::vector<Field>& fields);
  const Field* find(std::string_view name) const;
  const std::vector<Field>& all() const { return fields_; }
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<Field> fields_;
  std::vector<std::string_view> names_;
  std::map<std::string_view, std::size_t> places_;
};

// Of one family, or of none in particular.
const FieldTable& fields_of(std::string_view model_type);

}  // namespace weft::imports
