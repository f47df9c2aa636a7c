// weft/translate/recipe/text_entries.h -- a configuration's text as entries that can be edited.
//
// An entry is a line of TOML or YAML, a flag with its values, an override or a member of a JSON
// object. Entries without a setting, such as comments, are kept.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/translate/recipe/settings.h"

namespace weft::recipe {

class Entries {
 public:
  // Text that the syntax does not allow is kept in entries without a setting.
  static Entries read(Syntax syntax, std::string_view text);

  std::string print() const;
  Settings settings() const;

  std::optional<std::size_t> find(std::string_view path) const;
  void replace(std::size_t at, const std::string& text);
  void erase(std::size_t at);
  // If the setting's section does not exist, it is added at the end.
  void insert(std::size_t at, const Setting& setting);

  // "training" of "training.seq_len"; empty in syntaxes without sections.
  std::string_view section_of(std::string_view path) const;
  // Behind the section's last setting.
  std::size_t end_of(std::string_view section) const;

 private:
  struct Entry {
    std::string path;  // empty: no setting
    std::string before, value, after;
    bool is_section = false;  // path is a section's
  };

  void read_flags(std::string_view text);
  void read_words(std::string_view text);
  void read_lines(std::string_view text);
  void read_json(std::string_view text);
  std::string print_json() const;
  std::size_t open_section(std::string_view section);

  Syntax syntax_ = Syntax::flags;
  std::vector<Entry> entries_;
};

}  // namespace weft::recipe
