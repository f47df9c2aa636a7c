// weft/translate/recipe/language.h -- the launchers whose configurations are read and written.
//
//   read(Language::nemo, text)     ->  Recipe
//   print(Language::nemo, recipe)  ->  a whole configuration
//   rewrite(Language::nemo, text, today, better)  ->  the user's text with what changes
//
// What is particular to a language is in its file: megatron.cpp, deepspeed.cpp, ...
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

enum class Language : std::uint8_t { megatron, deepspeed, torchtitan, nemo, bridge, accelerate, maxtext };
inline constexpr std::array kLanguages = {Language::megatron, Language::deepspeed, Language::torchtitan,
                                          Language::nemo,     Language::bridge,    Language::accelerate,
                                          Language::maxtext};

std::string_view name(Language language);
// The stack (docs/stacks.md) of the software that runs the language's configurations.
std::string_view stack_of(Language language);
// "ds_config.json"; what a user gives on the command line.
std::string_view given_as(Language language);

// `devices`: of the cluster; 0: not known.
Result<Recipe> read(Language language, std::string_view text, std::int64_t devices);
Written print(Language language, const Recipe& recipe);

struct Rewritten {
  std::string before;  // the user's text; flags and JSON with one setting per line
  Written after;       // the same with the settings of `better`
};

// `read`: what read() made of the text.
Rewritten rewrite(Language language, std::string_view text, const Recipe& read, const Recipe& better);

// The setting that an error about a parallel degree or batch refers to, such as "tensor"; empty if
// the language has none.
std::string_view setting_about(Language language, std::string_view message, std::string_view text);

// Fails if the launcher refuses the recipe for its model, whose sizes are in recipe.model.
Status check_in(Language language, const Recipe& recipe);

// The recipe as the language can express it: unsupported settings are replaced. Empty if it cannot
// be expressed at all. `today`: what the user's program already does besides.
std::optional<Recipe> expressible_in(Language language, Recipe recipe, const Recipe& today);

}  // namespace weft::recipe
