#include "weft/translate/recipe/fields.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"

namespace weft::recipe {
namespace {

constexpr std::size_t kMostYamlBytes = 1 << 20;
constexpr std::size_t kMostSettings = 10'000, kMostLevels = 32;

// An alias repeats its anchor, so a short text can have very many settings.
Status flatten(const YAML::Node& node, const std::string& path, std::size_t level, Settings& settings) {
  if (level > kMostLevels)
    return user_error(fmt::format("expected at most {} levels of settings, found more", kMostLevels));
  if (settings.size() > kMostSettings)
    return user_error(fmt::format("expected at most {} settings, found more", kMostSettings));
  for (const auto& member : node) {
    if (!member.first.IsScalar())
      return user_error(fmt::format("expected a name of a setting, found a list or a map in line {}",
                                    member.first.Mark().line + 1));
    const std::string inner = path.empty() ? member.first.Scalar() : path + "." + member.first.Scalar();
    if (find(settings, inner) != nullptr)
      return user_error(fmt::format("{} is given twice, again in line {}", formats::shown(inner),
                                    member.first.Mark().line + 1));
    const YAML::Node& value = member.second;
    if (value.IsMap() && value.size() > 0) {
      WEFT_TRY_STATUS(flatten(value, inner, level + 1, settings));
    } else if (value.IsScalar()) {
      settings.push_back({inner, value.Scalar()});
    } else if (value.IsNull()) {
      settings.push_back({inner, "null"});
    } else {
      settings.push_back({inner, value.IsMap() ? "{}" : "[..]"});
    }
  }
  return {};
}

Result<Settings> read_yaml(std::string_view text) {
  if (text.size() > kMostYamlBytes)
    return user_error(
        fmt::format("expected at most {} bytes of YAML, found {}", kMostYamlBytes, text.size()));
  Settings settings;
  try {
    const YAML::Node top = YAML::Load(std::string(text));
    if (top.IsNull() || !top.IsDefined()) return settings;
    if (!top.IsMap()) return user_error("expected settings, found a value without a name", "name: value");
    WEFT_TRY_STATUS(flatten(top, {}, 0, settings));
  } catch (const YAML::Exception& error) {
    return user_error(fmt::format("expected YAML, found an error in line {}, column {}: {}",
                                  error.mark.line + 1, error.mark.column + 1, formats::shown(error.msg)));
  }
  return settings;
}

Error wrong_value(std::string_view path, std::string_view expected, std::string_view found) {
  const bool refers = found.find("${") != std::string_view::npos;
  return user_error(fmt::format("{}: expected {}, found '{}'", path, expected, formats::shown(found)),
                    refers ? "write the value: references are not resolved" : "");
}

}  // namespace

Syntax syntax_of(std::string_view text) {
  std::string_view first = text;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos) first = text.substr(begin);
  const std::size_t equals = first.find('='), colon = first.find(": "), comment = first.find('#');
  const std::size_t line_colon = first.find(":\n");
  return equals < std::min({colon, line_colon, comment}) ? Syntax::words : Syntax::yaml;
}

Result<Fields> Fields::read(std::string_view text) {
  Fields fields;
  if (syntax_of(text) == Syntax::words) {
    fields.settings_ = settings_in(Syntax::words, text);
    if (fields.settings_.size() > kMostSettings)
      return user_error(fmt::format("expected at most {} settings, found more", kMostSettings));
    for (Setting& setting : fields.settings_) setting.text = std::string(without_quotes(setting.text));
    for (std::size_t i = 0; i < fields.settings_.size(); ++i)
      if (find(fields.settings_, fields.settings_[i].path) != &fields.settings_[i])
        return user_error(fmt::format("{} is given twice", formats::shown(fields.settings_[i].path)));
    return fields;
  }
  WEFT_TRY(settings, read_yaml(text));
  fields.settings_ = std::move(settings);
  return fields;
}

bool Fields::has(std::string_view path) const {
  const Setting* const setting = find(settings_, path);
  return setting != nullptr && setting->text != "null" && setting->text != "~" && setting->text != "None";
}

const Setting* Fields::take(std::string_view path) {
  asked_.emplace(path);
  return has(path) ? find(settings_, path) : nullptr;
}

Result<std::int64_t> Fields::count(std::string_view path, std::int64_t otherwise, std::int64_t least) {
  const Setting* const setting = take(path);
  if (setting == nullptr) return otherwise;
  const auto count = read_number<std::int64_t>(setting->text, least, std::int64_t{1} << 40);
  if (!count) return wrong_value(path, fmt::format("a whole number of at least {}", least), setting->text);
  return *count;
}

Result<double> Fields::number(std::string_view path, double otherwise) {
  const Setting* const setting = take(path);
  if (setting == nullptr) return otherwise;
  const auto number = read_number<double>(setting->text, 0, 1e15);
  if (!number) return wrong_value(path, "a number", setting->text);
  return *number;
}

Result<bool> Fields::truth(std::string_view path, bool otherwise) {
  const Setting* const setting = take(path);
  if (setting == nullptr) return otherwise;
  for (const std::string_view yes : {"true", "True", "TRUE", "yes", "on"})
    if (setting->text == yes) return true;
  for (const std::string_view no : {"false", "False", "FALSE", "no", "off"})
    if (setting->text == no) return false;
  return wrong_value(path, "true or false", setting->text);
}

Result<std::string> Fields::word(std::string_view path, std::string_view otherwise) {
  const Setting* const setting = take(path);
  return setting == nullptr ? std::string(otherwise) : setting->text;
}

Result<std::string> Fields::word_of(std::string_view path, std::string_view otherwise,
                                    std::span<const std::string_view> expected) {
  WEFT_TRY(found, word(path, otherwise));
  if (std::ranges::find(expected, found) == expected.end())
    return wrong_value(path, fmt::format("{}", fmt::join(expected, ", ")), found);
  return found;
}

Status Fields::keep_rest(Recipe& recipe, std::span<const std::string_view> known) const {
  std::vector<std::string> names;
  std::vector<std::string_view> absent;  // a setting that is there is not misspelled besides
  for (const std::string_view one : known)
    if (find(settings_, one) == nullptr) absent.push_back(one);
  for (const Setting& setting : settings_) {
    if (asked_.contains(setting.path)) continue;
    if (const std::string hint = misspelling_hint(setting.path, absent); !hint.empty())
      return user_error(fmt::format("unknown setting: {}", formats::shown(setting.path)), hint);
    names.push_back(formats::shown(setting.path));
    recipe.others.emplace_back(setting.path, setting.text);
  }
  note_kept(recipe, names);
  return {};
}

void note_kept(Recipe& recipe, const std::vector<std::string>& names) {
  if (!names.empty())
    recipe.notes.push_back(
        fmt::format("not part of the estimate, kept unchanged: {}", fmt::join(names, ", ")));
}

std::string truth_text(bool is) { return is ? "true" : "false"; }

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", text); }

}  // namespace weft::recipe
