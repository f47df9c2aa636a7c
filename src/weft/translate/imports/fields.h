// weft/translate/imports/fields.h -- all known fields of config.json, and their treatment.
//
//   {"head_dim", honoured}                      the importer uses it
//   {"pad_token_id", honoured, "sequence"}      used only by a class with that head
//   {"use_cache", harmless, "for generation"}   does not affect the model; the reason
//   {"mlp_bias", only, "false"}                 any other value is refused
//   {"hidden_size", same_as, "n_embd"}          an alias: refused unless both agree
//
// A family may read only the fields that its table marks honoured (Config checks this). A field
// that is in no table is listed in a note. A test changes every field of every table: an honoured
// field must change the import or make it fail, a harmless one must change nothing.
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
  std::string_view detail = {};  // honoured: heads (empty: all); harmless: why; only: JSON; same_as: a field
};

class FieldTable {
 public:
  // If a field occurs twice, the first entry counts.
  explicit FieldTable(const std::vector<Field>& fields);
  const Field* find(std::string_view name) const;
  const std::vector<Field>& all() const { return fields_; }
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::vector<Field> fields_;
  std::vector<std::string_view> names_;
  std::map<std::string_view, std::size_t> places_;
};

// The table of one family, or of the shared fields.
const FieldTable& fields_of(std::string_view model_type);

}  // namespace weft::imports
