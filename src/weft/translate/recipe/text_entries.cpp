#include "weft/translate/recipe/text_entries.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Shell words with their quotes. A backslash before a line's end is a blank.
std::vector<std::string_view> raw_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = std::string_view::npos;
  char quote = '\0';
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool joins = quote == '\0' && c == '\\' && i + 1 < text.size() && text[i + 1] == '\n';
    const bool blank = quote == '\0' && (joins || kSpaces.find(c) != std::string_view::npos);
    if ((blank || i == text.size()) && begin != std::string_view::npos) {
      words.push_back(text.substr(begin, i - begin));
      begin = std::string_view::npos;
    }
    if (joins) ++i;
    if (blank || i >= text.size()) continue;
    if (begin == std::string_view::npos) begin = i;
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '\\') {
      ++i;
    }
  }
  return words;
}

// The end of a value that a comment may follow.
std::size_t value_end(std::string_view line, std::size_t begin, bool needs_blank) {
  char quote = '\0';
  for (std::size_t i = begin; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = '\0';
    } else if ((c == '"' || c == '\'') && (i == begin || !needs_blank)) {
      quote = c;
    } else if (c == '#' && (!needs_blank || i == begin || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return begin + trimmed(line.substr(begin, i - begin)).size();
    }
  }
  return begin + trimmed(line.substr(begin)).size();
}

}  // namespace

Entries Entries::read(Syntax syntax, std::string_view text) {
  Entries entries;
  entries.syntax_ = syntax;
  switch (syntax) {
    case Syntax::flags: entries.read_flags(text); break;
    case Syntax::words: entries.read_words(text); break;
    case Syntax::json: entries.read_json(text); break;
    case Syntax::toml:
    case Syntax::yaml: entries.read_lines(text); break;
  }
  return entries;
}

// The launcher, with its own flags and the program's name, is one entry.
void Entries::read_flags(std::string_view text) {
  const std::vector<std::string_view> words = raw_words(text);
  std::size_t first = 0;
  // A text that begins with a flag has no launcher.
  const auto program = std::ranges::find_if(
      words, [](std::string_view word) { return without_quotes(word).ends_with(".py"); });
  if (!words.empty() && !words.front().starts_with("--") && program != words.end())
    first = static_cast<std::size_t>(program - words.begin()) + 1;
  while (first < words.size() && !words[first].starts_with("--")) ++first;
  Entry entry;
  for (std::size_t i = 0; i < first; ++i) entry.after += (i > 0 ? " " : "") + std::string(words[i]);
  if (first > 0) entries_.push_back(entry);
  for (std::size_t i = first; i < words.size();) {
    std::string_view flag = words[i++];
    entry = {};
    const std::size_t equals = flag.find('=');
    entry.before = flag.substr(0, equals);
    if (equals != std::string_view::npos) {
      entry.before += '=';
      entry.value = flag.substr(equals + 1);
    }
    entry.path = flag.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    for (; i < words.size() && !words[i].starts_with("--"); ++i) {
      if (equals == std::string_view::npos && entry.value.empty()) entry.before += ' ';
      entry.value += (entry.value.empty() ? "" : " ") + std::string(words[i]);
    }
    entries_.push_back(std::move(entry));
  }
}

void Entries::read_words(std::string_view text) {
  for (const std::string_view word : raw_words(text)) {
    Entry entry;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || word.starts_with("-")) {
      // The program and its own flags stay on one line.
      if (!entries_.empty() && entries_.back().path.empty()) {
        entries_.back().after += fmt::format(" {}", word);
        continue;
      }
      entry.after = word;
    } else {
      std::string_view path = word.substr(0, equals);
      while (path.starts_with('+')) path.remove_prefix(1);
      entry.path = path;
      entry.before = word.substr(0, equals + 1);
      entry.value = word.substr(equals + 1);
    }
    entries_.push_back(std::move(entry));
  }
}

// TOML sections are headers in brackets, YAML's are keys without a value on lines that are indented
// less.
void Entries::read_lines(std::string_view text) {
  const bool toml = syntax_ == Syntax::toml;
  struct Open {
    std::size_t indent;
    std::string path;
  };
  std::vector<Open> open;
  std::string section;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view body = trimmed(line);
    Entry entry;
    entry.after = line;
    const std::size_t mark = toml ? body.find('=') : body.find(':');
    if (toml && body.starts_with('[') && !body.starts_with("[[")) {
      section = trimmed(body.substr(1, body.find(']') - 1));
      entry.path = section;
      entry.is_section = true;
    } else if (!body.empty() && body.front() != '#' && mark != std::string_view::npos &&
               (toml || (body.front() != '-' && (mark + 1 == body.size() || body[mark + 1] == ' ')))) {
      const auto indent = static_cast<std::size_t>(body.data() - line.data());
      const std::string key(without_quotes(trimmed(body.substr(0, mark))));
      std::size_t begin = indent + mark + 1;
      while (begin < line.size() && (line[begin] == ' ' || line[begin] == '\t')) ++begin;
      const std::size_t stop = value_end(line, begin, !toml);
      std::string parent = section;
      if (!toml) {
        while (!open.empty() && open.back().indent >= indent) open.pop_back();
        parent = open.empty() ? std::string() : open.back().path;
      }
      entry.path = parent.empty() ? key : fmt::format("{}.{}", parent, key);
      if (!toml && stop <= begin) {
        open.push_back({indent, entry.path});
        entry.is_section = true;
      } else {
        entry.before = line.substr(0, begin);
        entry.value = line.substr(begin, stop - begin);
        entry.after = line.substr(stop);
      }
    }
    entries_.push_back(std::move(entry));
  }
}

// Members of the object and of the objects in it, to the last level. Lists are values.
void Entries::read_json(std::string_view text) {
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && kSpaces.find(text[at]) != std::string_view::npos) ++at;
  };
  const auto skip_string = [&] {
    for (++at; at < text.size() && text[at] != '"'; ++at)
      if (text[at] == '\\') ++at;
    at = std::min(at + 1, text.size());
  };
  std::vector<std::string> names;
  skip();
  if (at >= text.size() || text[at] != '{') return;
  std::size_t depth = 1;
  ++at;
  while (depth > 0) {
    skip();
    if (at >= text.size()) return;
    if (text[at] == '}') {
      --depth;
      if (!names.empty()) names.pop_back();
      ++at;
      continue;
    }
    if (text[at] == ',') {
      ++at;
      continue;
    }
    if (text[at] != '"') return;
    const std::size_t key_begin = at;
    skip_string();
    const std::string key(without_quotes(text.substr(key_begin, at - key_begin)));
    skip();
    if (at >= text.size() || text[at] != ':') return;
    ++at;
    skip();
    Entry entry;
    // A dot within a key is no separator; such keys are never changed.
    entry.path = names.empty() ? key : fmt::format("{}.{}", names.back(), key);
    entry.before = key;
    const std::size_t begin = at;
    if (at < text.size() && text[at] == '{') {
      std::size_t inside = at + 1;
      while (inside < text.size() && kSpaces.find(text[inside]) != std::string_view::npos) ++inside;
      if (inside < text.size() && text[inside] != '}') {
        entry.is_section = true;
        names.push_back(entry.path);
        entries_.push_back(std::move(entry));
        ++depth;
        ++at;
        continue;
      }
      at = std::min(inside + 1, text.size());
    } else {
      std::size_t lists = 0;
      while (at < text.size()) {
        const char c = text[at];
        if (lists == 0 && (c == ',' || c == '}' || kSpaces.find(c) != std::string_view::npos)) break;
        if (c == '"') {
          skip_string();
          continue;
        }
        if (c == '[' || c == '{') ++lists;
        if ((c == ']' || c == '}') && lists > 0) --lists;
        ++at;
      }
    }
    entry.value = text.substr(begin, at - begin);
    entries_.push_back(std::move(entry));
  }
}

std::string Entries::print_json() const {
  std::string out = "{";
  std::vector<std::string> open;
  bool first = true;
  const auto line = [&](std::string_view text) {
    out += fmt::format("{}\n{:{}}{}", first ? "" : ",", "", 2 * (open.size() + 1), text);
    first = false;
  };
  const auto close = [&] {
    open.pop_back();
    out += fmt::format("\n{:{}}}}", "", 2 * (open.size() + 1));
    first = false;
  };
  for (const Entry& entry : entries_) {
    while (!open.empty() && !entry.path.starts_with(open.back() + ".")) close();
    if (entry.is_section) {
      line(fmt::format("\"{}\": {{", entry.before));
      open.push_back(entry.path);
      first = true;
    } else {
      line(fmt::format("\"{}\": {}", entry.before, entry.value));
    }
  }
  while (!open.empty()) close();
  return out + (entries_.empty() ? "}\n" : "\n}\n");
}

std::string Entries::print() const {
  if (syntax_ == Syntax::json) return print_json();
  const bool one_command = syntax_ == Syntax::flags || syntax_ == Syntax::words;
  std::string out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    out += entry.before + entry.value + entry.after;
    if (one_command && i + 1 < entries_.size()) out += " \\";
    out += '\n';
  }
  return out;
}

Settings Entries::settings() const {
  Settings settings;
  for (const Entry& entry : entries_)
    if (!entry.path.empty() && !entry.is_section) settings.push_back({entry.path, entry.value});
  return settings;
}

std::optional<std::size_t> Entries::find(std::string_view path) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!entries_[i].is_section && entries_[i].path == path) return i;
  return std::nullopt;
}

void Entries::replace(std::size_t at, const std::string& text) {
  Entry& entry = entries_[at];
  if (syntax_ == Syntax::flags && entry.value.empty() && !text.empty()) entry.before += ' ';
  entry.value = text;
}

// A section that becomes empty goes too.
void Entries::erase(std::size_t at) {
  const std::string section(section_of(entries_[at].path));
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
  if (section.empty() || syntax_ == Syntax::toml) return;
  const std::string inside = section + ".";
  if (std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.path.starts_with(inside); }))
    return;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.is_section && entry.path == section; });
}

std::string_view Entries::section_of(std::string_view path) const {
  if (syntax_ == Syntax::flags || syntax_ == Syntax::words) return {};
  const std::size_t dot = syntax_ == Syntax::toml ? path.find('.') : path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::size_t Entries::end_of(std::string_view section) const {
  if (section.empty()) {
    // Top-level settings of TOML come before its sections.
    if (syntax_ != Syntax::toml) return entries_.size();
    const auto first = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.is_section; });
    return static_cast<std::size_t>(first - entries_.begin());
  }
  const std::string inside = fmt::format("{}.", section);
  std::size_t end = entries_.size();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].path.starts_with(inside) || (entries_[i].is_section && entries_[i].path == section))
      end = i + 1;
  return end;
}

// Opens the section, with those it is in; returns the place for its settings.
std::size_t Entries::open_section(std::string_view section) {
  const auto opened = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.is_section && entry.path == section; });
  if (opened != entries_.end()) return end_of(section);
  Entry entry;
  entry.path = section;
  entry.is_section = true;
  const std::size_t dot = section.rfind('.');
  std::size_t at = entries_.size();
  if (syntax_ == Syntax::toml) {
    if (!entries_.empty()) entries_.emplace_back();
    entry.after = fmt::format("[{}]", section);
    at = entries_.size();
  } else {
    std::size_t indent = 0;
    if (dot != std::string_view::npos) {
      at = open_section(section.substr(0, dot));
      indent = 2 * static_cast<std::size_t>(std::ranges::count(section, '.'));
    }
    const std::string_view key = dot == std::string_view::npos ? section : section.substr(dot + 1);
    entry.before = syntax_ == Syntax::json ? std::string(key) : fmt::format("{:{}}{}:", "", indent, key);
  }
  entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at), std::move(entry));
  return at + 1;
}

void Entries::insert(std::size_t at, const Setting& setting) {
  Entry entry;
  entry.path = setting.path;
  entry.value = setting.text;
  const std::string section(section_of(setting.path));
  const std::string key = section.empty() ? setting.path : setting.path.substr(section.size() + 1);
  switch (syntax_) {
    case Syntax::flags:
      entry.before = fmt::format("--{}{}", setting.path, setting.text.empty() ? "" : " ");
      break;
    case Syntax::words: entry.before = setting.path + "="; break;
    case Syntax::json: entry.before = key; break;
    case Syntax::toml: entry.before = key + " = "; break;
    case Syntax::yaml: entry.before = key + ": "; break;
  }
  if (!section.empty()) {
    const std::size_t opened = open_section(section);
    const auto in_section = [&](const Entry& other) { return other.path.starts_with(section + "."); };
    // `at` is a place in the section if the section was there before.
    const bool was_there = std::ranges::any_of(entries_, in_section);
    if (!was_there || at > entries_.size()) at = opened;
  }
  if (syntax_ == Syntax::yaml) {
    // As its neighbours in the section.
    std::size_t indent = 2 * static_cast<std::size_t>(std::ranges::count(setting.path, '.'));
    for (const Entry& other : entries_)
      if (!other.path.empty() && section_of(other.path) == section)
        indent = std::min(other.before.find_first_not_of(' '), other.before.size());
    entry.before.insert(0, indent, ' ');
  }
  entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at), std::move(entry));
}

}  // namespace weft::recipe
