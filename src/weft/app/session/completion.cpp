// Tab completion: words that can follow at the cursor.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "weft/app/session/state.h"
#include "weft/base/letters.h"
#include "weft/language/functions.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {
namespace {

constexpr std::string_view kStatements[] = {"CLEAR",    "CREATE", "DESCRIBE", "DROP", "EXPLAIN",
                                            "GENERATE", "HINT",   "INFER",    "LOAD", "RUN",
                                            "SAVE",     "SET",    "SHOW",     "TRAIN"};
constexpr std::string_view kShownNames[] = {"CLUSTERS", "DEVICES",   "FUNCTIONS", "HINTS",  "LAYERS",
                                            "MODELS",   "OPERATORS", "SETTINGS",  "STACKS", "STATISTICS"};
constexpr std::string_view kCreated[] = {"CLUSTER", "DEVICE", "FUNCTION",  "LAYER",
                                         "MODEL",   "STACK",  "OR REPLACE"};
constexpr std::string_view kDropped[] = {"CLUSTER", "DEVICE", "FUNCTION", "LAYER", "MODEL", "STACK"};
constexpr std::string_view kExplained[] = {"INFER", "TRAIN", "VERBOSE", "(FORMAT json)", "(FORMAT plan)"};
constexpr std::string_view kHinted[] = {"SLICE", "REPLICATE", "DP", "TP", "PP", "EP", "CP", "ZERO"};
constexpr std::string_view kInside[] = {
    "ACROSS",       "AS",     "CASE",      "CAST",   "ELSE",  "END",   "FROM", "GROUP BY",
    "INIT",         "INPUT",  "JOIN",      "LOCAL",  "OF",    "ON",    "OVER", "PARAMETER",
    "PARTITION BY", "REPEAT", "REPLICATE", "SELECT", "SLICE", "STATE", "THEN", "TIMES",
    "WHEN",         "WHERE",  "WITH",      "STEPS",  "INTO",  "PROMPT"};

constexpr std::string_view kFormats[] = {"text",       "json",       "plan",  "megatron",
                                         "deepspeed",  "torchtitan", "nemo",  "bridge",
                                         "accelerate", "maxtext",    "torch", "torchtitan_toml"};
constexpr std::string_view kFileSettings[] = {"checkpoint", "checkpoint_best", "log"};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Keywords match in either case; names match exactly.
bool begins(std::string_view word, std::string_view prefix, bool any_case) {
  if (prefix.size() > word.size()) return false;
  return std::equal(prefix.begin(), prefix.end(), word.begin(),
                    [&](char a, char b) { return any_case ? to_lower(a) == to_lower(b) : a == b; });
}

// The position of the cursor within a statement.
struct Cursor {
  std::size_t begin = 0;      // start of the unfinished word or open quoted text
  bool quoted = false;        // inside '...
  std::string_view previous;  // the word before it
  std::string_view model;     // after TRAIN, INFER or GENERATE
  // The words and `=` since the last comma or parenthesis, without the unfinished word.
  std::vector<std::string_view> entry;
  std::vector<std::string_view> openers;  // the word before each open parenthesis

  bool in_settings() const { return !openers.empty() && upper(openers.back()) == "WITH" && !model.empty(); }
};

Cursor find_cursor(std::string_view before) {
  Cursor at;
  std::vector<std::vector<std::string_view>> outer;  // entries that enclose the open parentheses
  for (std::size_t i = 0; i < before.size();) {
    const char c = before[i];
    if (in_word(c)) {
      const std::size_t from = i;
      while (i < before.size() && in_word(before[i])) ++i;
      at.begin = from;
      if (i == before.size()) return at;
      const std::string_view word = before.substr(from, i - from);
      const std::string kind = upper(at.previous);
      if (at.openers.empty() && (kind == "TRAIN" || kind == "INFER" || kind == "GENERATE")) at.model = word;
      at.previous = word;
      at.entry.push_back(word);
    } else if (c == '\'' || c == '"') {
      const std::size_t close = before.find(c, i + 1);
      if (close == before.npos) {
        at.begin = i + 1;
        at.quoted = c == '\'';
        return at;
      }
      i = close + 1;
    } else if (before.substr(i).starts_with("--")) {
      i = std::min(before.find('\n', i), before.size());
    } else {
      ++i;
      if (c == ';') at = Cursor{}, outer.clear();
      if (c == '(') {
        at.openers.push_back(at.previous);
        outer.push_back(std::exchange(at.entry, {}));
      }
      if (c == ')' && !at.openers.empty()) {
        at.openers.pop_back();
        at.entry = std::move(outer.back());
        outer.pop_back();
      }
      if (c == ',') at.entry.clear();
      if (c == '=') at.entry.push_back(before.substr(i - 1, 1));
    }
  }
  at.begin = before.size();
  return at;
}

// The words a setting accepts, out of all words that settings use.
std::vector<std::string> words_of(const SettingSpec& setting) {
  using language::syntax::Value, language::syntax::ValueKind;
  const auto word = [](std::string_view text) {
    const bool truth = text == "true" || text == "false";
    return Value{.kind = truth ? ValueKind::boolean : ValueKind::word,
                 .truth = text == "true",
                 .number = {},
                 .quantity = {},
                 .text = text,
                 .span = {}};
  };
  const auto takes = [&](std::string_view text) {
    Settings scratch;
    return setting.set(scratch, word(text)).ok();
  };
  constexpr std::string_view kNone = "no_such_word", kList = "expected one of ", kFound = ", found ";
  Settings scratch;
  const Status refused = setting.set(scratch, word(kNone));
  if (refused.ok()) return {};  // accepts any text
  std::vector<std::string> known = {"true", "false", "automatic", "off"};
  for (const plan::DType dtype : plan::kAllDTypes) known.emplace_back(plan::name(dtype));
  std::string_view list = refused.error().message;
  if (list.starts_with(kList)) {
    list = list.substr(kList.size(), list.find(kFound) - kList.size());
    for (std::size_t comma = 0; comma != list.npos; list.remove_prefix(std::min(list.size(), comma + 2))) {
      comma = list.find(", ");
      known.emplace_back(list.substr(0, comma));
      if (comma == list.npos) break;
    }
  }
  std::vector<std::string> words;
  for (const std::string& text : known)
    if (takes(text) && std::ranges::find(words, text) == words.end()) words.push_back(text);
  return words;
}

// Files and folders that start with `path`; hidden ones only if it names a leading dot.
std::vector<std::string> files_that_begin(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder(path.substr(0, slash == path.npos ? 0 : slash + 1));
  const std::string_view begin = path.substr(folder.size());
  std::vector<std::string> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, failed), end;
       !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begin) || (name.starts_with('.') && begin.empty())) continue;
    if (name.find_first_of("'\"\n") != name.npos) continue;  // would need quoting
    std::error_code unknown;
    found.push_back(folder + name + (entry->is_directory(unknown) ? "/" : ""));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

Completions Session::complete(std::string_view before) const {
  const Cursor at = find_cursor(before);
  const std::string_view prefix = before.substr(at.begin);
  const std::string previous = upper(at.previous);
  Completions found;
  found.replaced = prefix.size();
  std::vector<std::string>& words = found.words;
  const auto offer = [&](const auto& candidates, bool any_case) {
    for (const std::string_view word : candidates)
      if (begins(word, prefix, any_case)) words.emplace_back(word);
  };
  const language::Catalog& catalog = state_->catalog;
  const bool after_equals = at.entry.size() >= 2 && at.entry.back() == "=";
  const std::string_view set = after_equals ? at.entry[at.entry.size() - 2] : std::string_view();
  if (at.quoted) {
    const bool is_file = at.openers.empty()
                             ? previous != "PROMPT"
                             : std::ranges::find(kFileSettings, set) != std::end(kFileSettings);
    if (is_file) words = files_that_begin(prefix);
    found.after = "' ";
    return found;
  }
  const bool sets = at.openers.empty() && !at.entry.empty() && upper(at.entry.front()) == "SET";
  if ((at.in_settings() && after_equals) || (sets && (after_equals || previous == "TO"))) {
    const std::string_view name = previous == "TO" && at.entry.size() >= 2 ? at.entry[1] : at.previous;
    for (const SettingSpec& setting : setting_specs())
      if (setting.name == name) offer(words_of(setting), true);
    if (name != "device") return found;
    offer(language::names_of(catalog.clusters), false);
    offer(language::names_of(catalog.devices), false);
    return found;
  }
  if (at.in_settings()) {
    if (!at.entry.empty()) return found;
    if (const auto sizes = sizes_of(catalog, {at.model, {}}); sizes.ok()) offer(*sizes, false);
    offer(setting_names(), false);
    return found;
  }
  const bool first = at.previous.empty() && at.openers.empty();
  if (first) {
    offer(kStatements, true);
  } else if (previous == "SHOW") {
    offer(kShownNames, true);
  } else if (previous == "HINT") {
    offer(kHinted, true);
  } else if (previous == "CLEAR") {
    offer(std::initializer_list<std::string_view>{"STATISTICS"}, true);
  } else if (previous == "CREATE") {
    offer(kCreated, true);
  } else if (previous == "DROP") {
    offer(kDropped, true);
  } else if (previous == "EXPLAIN" || previous == "VERBOSE") {
    offer(kExplained, true);
  } else if (previous == "TRAIN" || previous == "INFER" || previous == "GENERATE" || previous == "MODEL" ||
             previous == "SAVE" || previous == "LOAD") {
    offer(language::names_of(catalog.models), false);
  } else if (previous == "ON" || previous == "CLUSTER") {
    offer(language::names_of(catalog.clusters), false);
    if (previous == "ON") offer(language::names_of(catalog.devices), false);
    if (previous == "ON") offer(std::initializer_list<std::string_view>{"LOCAL", "JOB", "GPU"}, true);
  } else if (previous == "FORMAT") {
    offer(kFormats, true);
  } else if (previous == "DEVICE" || previous == "DEVICES") {
    offer(language::names_of(catalog.devices), false);
  } else if (previous == "FUNCTION") {
    offer(language::names_of(catalog.functions), false);
  } else if (previous == "LAYER") {
    offer(language::names_of(catalog.layers), false);
  } else if (previous == "DESCRIBE") {
    offer(language::names_of(catalog.models), false);
    offer(language::names_of(catalog.layers), false);
    offer(language::names_of(catalog.functions), false);
    offer(language::names_of(catalog.clusters), false);
    offer(language::names_of(catalog.devices), false);
  } else if (previous == "SET") {
    offer(setting_names(), false);
  } else {
    offer(kInside, true);
    offer(language::function_names(), false);
    offer(language::names_of(catalog.functions), false);
    offer(language::names_of(catalog.layers), false);
  }
  return found;
}

}  // namespace weft::session
