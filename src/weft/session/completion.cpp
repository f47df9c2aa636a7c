// What Tab offers: the words that may come next, judged by the word before.
#include <algorithm>
#include <cctype>

#include "weft/base/letters.h"
#include "weft/language/functions.h"
#include "weft/session/state.h"

namespace weft::session {
namespace {

constexpr std::string_view kStatements[] = {"CLEAR",    "CREATE", "DESCRIBE", "DROP", "EXPLAIN",
                                            "GENERATE", "HINT",   "INFER",    "LOAD", "RUN",
                                            "SAVE",     "SET",    "SHOW",     "TRAIN"};
constexpr std::string_view kShownNames[] = {"CLUSTERS", "DEVICES",   "FUNCTIONS", "HINTS",     "LAYERS",
                                            "MODELS",   "OPERATORS", "SETTINGS",  "STATISTICS"};
constexpr std::string_view kCreated[] = {"CLUSTER", "DEVICE", "LAYER", "MODEL", "OR REPLACE"};
constexpr std::string_view kDropped[] = {"CLUSTER", "DEVICE", "LAYER", "MODEL"};
constexpr std::string_view kExplained[] = {"INFER", "TRAIN", "VERBOSE", "(FORMAT json)", "(FORMAT plan)"};
constexpr std::string_view kInside[] = {
    "ACROSS",       "AS",     "CASE",      "CAST",   "ELSE",  "END",   "FROM", "GROUP BY",
    "INIT",         "INPUT",  "JOIN",      "LOCAL",  "OF",    "ON",    "OVER", "PARAMETER",
    "PARTITION BY", "REPEAT", "REPLICATE", "SELECT", "SLICE", "STATE", "THEN", "TIMES",
    "WHEN",         "WHERE",  "WITH",      "STEPS",  "INTO",  "PROMPT"};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Keywords go by letters in either case; names as they are.
bool begins(std::string_view word, std::string_view prefix, bool any_case) {
  if (prefix.size() > word.size()) return false;
  return std::equal(prefix.begin(), prefix.end(), word.begin(),
                    [&](char a, char b) { return any_case ? to_lower(a) == to_lower(b) : a == b; });
}

}  // namespace

std::vector<std::string> Session::complete(std::string_view before) const {
  // Only the statement being typed counts.
  if (const std::size_t end = before.rfind(';'); end != std::string_view::npos) before.remove_prefix(end + 1);
  std::size_t start = before.size();
  while (start > 0 && in_word(before[start - 1])) --start;
  const std::string_view prefix = before.substr(start);
  std::size_t stop = start;
  while (stop > 0 && std::isspace(static_cast<unsigned char>(before[stop - 1])) != 0) --stop;
  std::size_t begin = stop;
  while (begin > 0 && in_word(before[begin - 1])) --begin;
  const std::string previous = upper(before.substr(begin, stop - begin));

  std::vector<std::string> words;
  const auto offer = [&](const auto& candidates, bool any_case) {
    for (const std::string_view word : candidates)
      if (begins(word, prefix, any_case)) words.emplace_back(word);
  };
  const language::Catalog& catalog = state_->catalog;
  const bool first =
      std::ranges::all_of(before.substr(0, start), [](unsigned char c) { return std::isspace(c) != 0; });
  if (first) {
    offer(kStatements, true);
  } else if (previous == "SHOW") {
    offer(kShownNames, true);
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
  } else if (previous == "DEVICE" || previous == "DEVICES") {
    offer(language::names_of(catalog.devices), false);
  } else if (previous == "LAYER") {
    offer(language::names_of(catalog.layers), false);
  } else if (previous == "DESCRIBE") {
    offer(language::names_of(catalog.models), false);
    offer(language::names_of(catalog.layers), false);
    offer(language::names_of(catalog.clusters), false);
    offer(language::names_of(catalog.devices), false);
  } else if (previous == "SET") {
    offer(setting_names(), false);
  } else {
    offer(kInside, true);
    offer(language::function_names(), false);
    offer(language::names_of(catalog.layers), false);
  }
  return words;
}

}  // namespace weft::session
