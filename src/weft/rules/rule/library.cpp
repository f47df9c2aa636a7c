#include "weft/rules/rule/library.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/instance.h"

namespace weft {
std::span<const EmbeddedFile> embedded_rules();
}  // namespace weft

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestFile = 1 << 24;
constexpr std::uint64_t kLibrarySeed = 0x10ad;

// Most guards that can never hold are detected in their text; the others by searching for an
// instance.
Status check_instance(const Rule& rule) {
  if (rule.when.empty()) return {};
  Random random(kLibrarySeed);
  InstanceOptions options;
  options.attempts *= 4;
  const auto instance = draw_instance(rule, random, options);
  if (instance.ok()) return {};
  return user_error(fmt::format("{}:{}: {}", rule.file, rule.line, instance.error().message),
                    "perhaps its guard can never hold");
}

Status append_rules(std::vector<Rule>& rules, std::string_view text, std::string_view path) {
  WEFT_TRY(parsed, parse_rules(text, path, ops::all()));
  for (Rule& rule : parsed) {
    WEFT_TRY_STATUS(check_instance(rule));
    rules.push_back(std::move(rule));
  }
  return {};
}

}  // namespace

const std::vector<Rule>& shipped_rules() {
  static const std::vector<Rule> rules = [] {
    auto loaded = load_rules(embedded_rules());
    WEFT_CHECK(loaded.ok(), loaded.error().message);
    return std::move(loaded).value();
  }();
  return rules;
}

Result<std::vector<Rule>> load_rules(std::span<const EmbeddedFile> files) {
  std::vector<Rule> rules;
  for (const EmbeddedFile& file : files) WEFT_TRY_STATUS(append_rules(rules, file.text, file.path));
  WEFT_TRY_STATUS(check_names(rules));
  return rules;
}

Result<std::vector<Rule>> load_rules(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
      if (at->path().extension() == ".rules") paths.push_back(at->path().string());
    if (failure)
      return environment_error(fmt::format("cannot read the folder {}: {}", path, failure.message()));
    std::ranges::sort(paths);
  } else {
    paths.push_back(path);
  }
  std::vector<Rule> rules;
  for (const std::string& each : paths) {
    WEFT_TRY(text, read_file(each, kLargestFile));
    WEFT_TRY_STATUS(append_rules(rules, text, each));
  }
  WEFT_TRY_STATUS(check_names(rules));
  return rules;
}

Status check_names(std::span<const Rule> rules) {
  std::map<std::string_view, const Rule*> seen;
  for (const Rule& rule : rules) {
    const auto [first, is_new] = seen.emplace(rule.name, &rule);
    if (!is_new)
      return user_error(fmt::format("two rules are called {}: {}:{} and {}:{}", rule.name,
                                    first->second->file, first->second->line, rule.file, rule.line));
  }
  return {};
}

}  // namespace weft::rule
