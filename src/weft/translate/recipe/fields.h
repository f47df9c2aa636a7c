// weft/translate/recipe/fields.h -- typed reading of a configuration's settings.
//
//   WEFT_TRY(fields, Fields::read(text));                         YAML, or overrides: a.b=1 c=2
//   WEFT_TRY(tensor, fields.count("model.tensor_model_parallel_size", 1));
//   recipe.others = fields.rest();                                what was not asked for
#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"
#include "weft/translate/recipe/settings.h"

namespace weft::recipe {

// Overrides have a = before any colon or line of its own; anything else is YAML.
Syntax syntax_of(std::string_view text);

class Fields {
 public:
  // Fails if the text is not YAML, or is not a map of settings.
  static Result<Fields> read(std::string_view text);

  bool has(std::string_view path) const;  // and is not null
  // `otherwise` if the setting is absent or null.
  Result<std::int64_t> count(std::string_view path, std::int64_t otherwise, std::int64_t least = 1);
  Result<double> number(std::string_view path, double otherwise);
  Result<bool> truth(std::string_view path, bool otherwise);
  Result<std::string> word(std::string_view path, std::string_view otherwise);
  // One of `expected`; fails with the list of them.
  Result<std::string> word_of(std::string_view path, std::string_view otherwise,
                              std::span<const std::string_view> expected);

  // Keeps unread settings in recipe.others and lists them in recipe.notes. Fails on one that is
  // nearly a known setting.
  Status keep_rest(Recipe& recipe, std::span<const std::string_view> known) const;

 private:
  const Setting* take(std::string_view path);

  Settings settings_;
  std::set<std::string, std::less<>> asked_;
};

// "not part of the estimate, kept unchanged: a, b, c"; nothing if the list is empty.
void note_kept(Recipe& recipe, const std::vector<std::string>& names);

std::string truth_text(bool is);               // true, false
std::string in_quotes(std::string_view text);  // "text"

}  // namespace weft::recipe
