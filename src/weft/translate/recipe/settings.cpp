#include "weft/translate/recipe/settings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/translate/recipe/text_entries.h"

namespace weft::recipe {
namespace {

struct Edit {
  std::string path;
  std::optional<std::string> text;  // empty: the setting is removed
};

std::vector<Edit> edits_between(const Settings& from, const Settings& to) {
  std::vector<Edit> edits;
  for (const Setting& setting : from)
    if (find(to, setting.path) == nullptr) edits.push_back({setting.path, std::nullopt});
  for (const Setting& setting : to) {
    const Setting* const before = find(from, setting.path);
    if (before == nullptr || before->text != setting.text) edits.push_back({setting.path, setting.text});
  }
  return edits;
}

// Where a new setting belongs: after the settings that precede it in the writer's order, in its section.
std::size_t place_for(const Entries& entries, const Settings& order, const std::string& path) {
  const std::string section(entries.section_of(path));
  const auto at_of = [&](const std::string& other) -> std::optional<std::size_t> {
    if (entries.section_of(other) != section) return std::nullopt;
    return entries.find(other);
  };
  const auto here = std::ranges::find(order, path, &Setting::path);
  for (auto before = here; before != order.begin();)
    if (const auto at = at_of((--before)->path)) return *at + 1;
  for (auto after = here; after != order.end(); ++after)
    if (const auto at = at_of(after->path)) return *at;
  return entries.end_of(section);
}

}  // namespace

const Setting* find(const Settings& settings, std::string_view path) {
  const auto found = std::ranges::find(settings, path, &Setting::path);
  return found == settings.end() ? nullptr : &*found;
}

std::string edited(Syntax syntax, std::string_view text, const Settings& from, const Settings& to,
                   std::span<const OtherName> names) {
  Entries entries = Entries::read(syntax, text);
  for (const Edit& edit : edits_between(from, to)) {
    std::optional<std::size_t> at = entries.find(edit.path);
    for (const OtherName& name : names) {
      if (name.usual != edit.path) continue;
      const std::optional<std::size_t> other = entries.find(name.other);
      if (!other) continue;
      if (name.same_values && !at)
        at = other;
      else
        entries.erase(*other), at = entries.find(edit.path);
    }
    if (!edit.text) {
      if (at) entries.erase(*at);
    } else if (at) {
      entries.replace(*at, *edit.text);
    } else {
      entries.insert(place_for(entries, to, edit.path), {edit.path, *edit.text});
    }
  }
  return entries.print();
}

Settings settings_in(Syntax syntax, std::string_view text) { return Entries::read(syntax, text).settings(); }

std::string print(Syntax syntax, const Settings& settings) {
  Entries entries = Entries::read(syntax, {});
  for (const Setting& setting : settings)
    entries.insert(entries.end_of(entries.section_of(setting.path)), setting);
  return entries.print();
}

std::string_view misspelled(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kMostLetters = 2;
  const std::string_view found = nearest(word, known);
  if (found.empty()) return {};
  const std::size_t shorter = std::min(word.size(), found.size()),
                    longer = std::max(word.size(), found.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && word[front] == found[front]) ++front;
  while (back < shorter - front && word[word.size() - 1 - back] == found[found.size() - 1 - back]) ++back;
  return front + back + kMostLetters >= longer ? found : std::string_view();
}

std::string misspelling_hint(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view found = misspelled(word, known);
  return found.empty() ? std::string() : fmt::format("did you mean '{}'?", found);
}

std::string_view without_quotes(std::string_view text) {
  const bool quoted =
      text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace weft::recipe
