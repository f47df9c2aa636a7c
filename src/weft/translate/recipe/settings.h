// weft/translate/recipe/settings.h -- a configuration as settings, and their changes in a user's text.
//
//   settings of today     tensor_parallel_degree 8      the user's job.toml:  tensor_parallel_degree = 8  # two nodes
//   settings of better    tensor_parallel_degree 4      edited:               tensor_parallel_degree = 4  # two nodes
//
// Only settings that differ between two recipes are changed in the text; all other lines stay as the
// user wrote them, with their numbers, comments and order.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::recipe {

struct Setting {
  std::string path;  // "zero_optimization.stage", "micro-batch-size"
  std::string text;  // in the language's syntax: 3, "always", 3e-4; empty for a switch

  friend bool operator==(const Setting&, const Setting&) = default;
};
using Settings = std::vector<Setting>;

const Setting* find(const Settings& settings, std::string_view path);

enum class Syntax : std::uint8_t {
  flags,  // --lr 3e-4
  words,  // optim.config.lr=3e-4, as overrides on a command line
  json,
  toml,
  yaml,
};

// Another name of a setting in a user's text.
struct OtherName {
  std::string_view other, usual;
  bool same_values = true;  // otherwise a change removes the other one
};

// The text with the changes from `from` to `to`. Flags, words and JSON come out one setting per line. A
// setting that the text does not contain where expected is added.
std::string edited(Syntax syntax, std::string_view text, const Settings& from, const Settings& to,
                   std::span<const OtherName> names = {});

// The settings of a text as it states them; settings in lists and in nested sections that the
// syntax's editor does not enter are left out.
Settings settings_in(Syntax syntax, std::string_view text);

// The settings as a text.
std::string print(Syntax syntax, const Settings& settings);

// A known name that differs from the word in one place by at most two letters; empty if none. Tools
// have hundreds of settings, so names that are only similar are not taken as misspelled.
std::string_view misspelled(std::string_view word, std::span<const std::string_view> known);

// "did you mean 'NAME'?", or "".
std::string misspelling_hint(std::string_view word, std::span<const std::string_view> known);

// "text" or 'text' without its quotes; other text unchanged.
std::string_view without_quotes(std::string_view text);

}  // namespace weft::recipe
